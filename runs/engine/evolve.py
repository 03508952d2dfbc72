"""evolve(state, entry): what each kind of fact changes. A table kind -> function; unknown kinds change nothing.

`evolve` also returns the ordinals of the calls touched: rows are written from what was touched, because one append may
both close a call and empty the turn.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from runs.engine import events as e
from runs.engine.limits import Limits
from runs.engine.state import Ask, CallState, RunState, Stop, replace

Evolved = tuple[RunState, tuple[int, ...]]
COUNTERS = ("repeats", "failures", "refusals", "claims")
JUDGED = ("label", "tool", "definition", "effect", "args", "objects", "rule", "exclude", "standing")
VERDICTS = {"allow": "ready", "ask": "waiting", "deny": "denied", "invalid": "invalid"}


def evolve(state: RunState, entry: e.Entry) -> Evolved:
    """State after one more fact, and the ordinals of the calls that it touched."""
    old = replace(state, t=max(state.t, entry.t))
    new = EVOLVE[type(entry.fact)](old, entry, entry.fact)
    return new, tuple(o for o, call in new.calls.items() if call is not old.calls.get(o))


def fold(entries: Iterable[e.Entry], state: RunState | None = None) -> RunState:
    """The state that a whole history amounts to."""
    return reduce(lambda state, entry: evolve(state, entry)[0], entries, state or RunState())


def is_progress(entry: e.Entry) -> bool:
    """True for what shows that a run gets on: an answer, a known outcome, a settlement, any act of a person."""
    fact = entry.fact
    known = isinstance(fact, e.CallEnded) and fact.outcome != "unknown"
    settled = isinstance(fact, e.CallSettled) and fact.proof != "class"
    return known or settled or entry.person is not None or isinstance(fact, e.ModelAnswered | e.LateEvidence)


def _count(state: RunState, **changes: int) -> RunState:
    return replace(state, n=replace(state.n, **changes))


def _change(state: RunState, entry: e.Entry, **changes: Any) -> RunState:
    return state.with_call(entry.ordinal, replace(state.calls[entry.ordinal], **changes))


def _move(state: RunState, entry: e.Entry, status: str, **changes: Any) -> RunState:
    return state.with_call(entry.ordinal, state.calls[entry.ordinal].to(status, **changes))


def _tally(state: RunState, call: CallState) -> RunState:
    """Count failures in a row, and effects by tool."""
    if call.status in ("invalid", "denied") or call.outcome in ("fatal", "retryable"):
        return _count(state, failures=state.n.failures + 1)
    state = _count(state, failures=0)
    if call.status == "done" and call.outcome == "ok" and call.effect not in ("read", "host"):
        state = replace(state, effects={**state.effects, call.tool: state.effects.get(call.tool, 0) + 1})
    return state


def run_started(state: RunState, entry: e.Entry, fact: e.RunStarted) -> RunState:
    limits = Limits.load(fact.limits)
    return replace(state, limits=limits, checks=fact.checks, starter=fact.starter, unattended=fact.unattended)


def model_asked(state: RunState, entry: e.Entry, fact: e.ModelAsked) -> RunState:
    tries = state.ask.tries if state.ask else 0
    state = replace(state, ask=Ask(attempt=fact.attempt, tries=tries, epoch=entry.epoch))
    if fact.attempt > 1:
        return state
    signature = state.turn_signature
    repeats = state.n.repeats + 1 if signature and signature == state.signature else 0
    state = _count(state, turns=state.n.turns + 1, repeats=repeats)
    size = state.segment_bytes + fact.bytes
    return replace(state, turn=entry.turn, calls={}, notes=[], signature=signature, segment_bytes=size)


def model_answered(state: RunState, entry: e.Entry, fact: e.ModelAnswered) -> RunState:
    state = _count(state, tokens=state.n.tokens + fact.tokens, ms=state.n.ms + fact.ms)
    return replace(state, ask=None, segment_bytes=state.segment_bytes + fact.bytes)


def model_failed(state: RunState, entry: e.Entry, fact: e.ModelFailed) -> RunState:
    ask = state.ask or Ask()
    ask = replace(ask, why=fact.reason, due=fact.retry_at, tries=ask.tries + 1)
    return replace(_count(state, ms=state.n.ms + fact.ms), ask=ask)


def call_judged(state: RunState, entry: e.Entry, fact: e.CallJudged) -> RunState:
    old = state.calls.get(entry.ordinal, CallState())
    again = old.revision == entry.revision and old.status == "ready"
    judged = {name: getattr(fact, name) for name in JUDGED}
    call = replace(old, status=old.status if again else "proposed", revision=entry.revision, **judged)
    if again and fact.verdict == "deny" and old.maybe_sent:
        call = call.to("unknown")  # judged again at its start: what may have been sent is in doubt, not denied
    elif fact.effect != "host" or fact.verdict in ("invalid", "deny"):
        call = call.to(VERDICTS[fact.verdict])
    elif fact.tool == "give_up":
        call, state = call.to("done", outcome="ok"), replace(state, gave_up=True)
    return (_tally(state, call) if call.ended else state).with_call(entry.ordinal, call)


def approval_requested(state: RunState, entry: e.Entry, fact: e.ApprovalRequested) -> RunState:
    asked = {"approval": fact.n, "approval_status": "pending", "expires": fact.expires, "action": fact.digest}
    return _change(state, entry, rule=fact.rule, exclude=fact.exclude, **asked)


def approval_closed(state: RunState, entry: e.Entry, fact: e.ApprovalClosed) -> RunState:
    call = state.calls[entry.ordinal]
    if fact.how in ("expired", "withdrawn") and call.status in ("waiting", "ready"):
        return _move(state, entry, "unknown" if call.maybe_sent else fact.how, approval_status=fact.how)
    return _change(state, entry, approval_status=fact.how)


def decided(state: RunState, entry: e.Entry, fact: e.Decided) -> RunState:
    if fact.vote == "approve":
        return _move(_count(state, refusals=0), entry, "ready", approval_status="approved")
    status = "unknown" if state.calls[entry.ordinal].maybe_sent else "refused"
    return _move(_count(state, refusals=state.n.refusals + 1), entry, status, approval_status="rejected")


def call_edited(state: RunState, entry: e.Entry, fact: e.CallEdited) -> RunState:
    revision = state.calls[entry.ordinal].revision + 1
    return _move(state, entry, "proposed", revision=revision, args=fact.args, edited=True)


def call_started(state: RunState, entry: e.Entry, fact: e.CallStarted) -> RunState:
    call = state.calls[entry.ordinal].to(
        "executing", key=fact.key, attempt=fact.attempt, deadline=fact.deadline, epoch=entry.epoch, due=0,
        standing=fact.standing, look_up=fact.look_up, resend_until=fact.resend_until,
    )  # fmt: skip
    approval = "consumed" if fact.via == "approval" else call.approval_status
    call = replace(call, started=call.started or entry.t, approval_status=approval)
    return _count(state, calls=state.n.calls + 1).with_call(entry.ordinal, call)


def call_ended(state: RunState, entry: e.Entry, fact: e.CallEnded) -> RunState:
    call = state.calls[entry.ordinal]
    state = _count(state, ms=state.n.ms + fact.ms)
    again = call.attempt < state.limits.attempts and not state.cancel and not call.late
    if fact.outcome == "retryable" and again:
        return _move(state, entry, "ready", due=fact.retry_at)
    # After a person's "again", what the second request came to says nothing about the first, unless it is ok.
    if fact.outcome == "unknown" or ((call.late or call.maybe_sent) and fact.outcome != "ok"):
        return _move(state, entry, "unknown", outcome="unknown", due=fact.retry_at, maybe_sent=call.has_effect)
    return _done(state, entry, fact)


def _done(state: RunState, entry: e.Entry, fact: e.CallEnded | e.CallSettled) -> RunState:
    state = _move(state, entry, "done", outcome=fact.outcome, observation=fact.observation, late={})
    return _tally(replace(state, met=sorted({*state.met, *fact.met})), state.calls[entry.ordinal])


def call_probed(state: RunState, entry: e.Entry, fact: e.CallProbed) -> RunState:
    if fact.phase == "asked":
        return _change(state, entry, probes=fact.n, probing=fact.how, epoch=entry.epoch)
    missed = fact.how == "lookup" and fact.verdict == "not_found"
    return _change(state, entry, probing="", due=fact.due, misses=state.calls[entry.ordinal].misses + missed)


def call_settled(state: RunState, entry: e.Entry, fact: e.CallSettled) -> RunState:
    if fact.to == "done":
        state = _done(state, entry, fact)
    elif fact.to == "ready":
        state = _move(state, entry, "ready", due=0, probes=0, misses=0, maybe_sent=fact.proof != "class")
    else:
        state = _move(state, entry, fact.to, outcome="", observation=fact.observation, maybe_sent=False)
    if state.stop and state.stop.reason == "unknown_effect" and not state.having("unknown"):
        state = replace(state, stop=None)
    return state


def question_answered(state: RunState, entry: e.Entry, fact: e.QuestionAnswered) -> RunState:
    return _move(_count(state, failures=0), entry, "done", outcome="ok", observation=fact.observation)


def _reopen(state: RunState) -> RunState:
    """Clear a stop together with the counter that caused it, or it would stop again at once."""
    ask = state.ask
    if state.stop and state.stop.reason in COUNTERS:
        state = _count(state, **{state.stop.reason: 0})
    if state.stop and state.stop.reason == "repeats":
        state = replace(state, signature="")
    if state.stop and ask and ask.why:
        ask = replace(ask, tries=0, due=0, why="resumed")
    return replace(state, stop=None, gave_up=False, ask=ask)


def cancel_asked(state: RunState, entry: e.Entry, fact: e.CancelAsked) -> RunState:
    touched = state.having("waiting", "ready")
    moved = {o: c.to("unknown" if c.maybe_sent else "withdrawn") for o, c in touched.items()}
    stop = state.stop if state.tampered else None
    return replace(state, cancel=True, stop=stop, gave_up=False, calls={**state.calls, **moved})


def run_ended(state: RunState, entry: e.Entry, fact: e.RunEnded) -> RunState:
    """End with every call at its end: what was not started will not be."""
    left = {o: call.to("withdrawn") for o, call in state.having("waiting", "ready").items()}
    return replace(state, end=fact.status, stop=None, paused=False, calls={**state.calls, **left})


def finish_refused(state: RunState, entry: e.Entry, fact: e.FinishRefused) -> RunState:
    """Refuse a finish by tool, or a claim by text alone, which is no call."""
    state = _count(state, claims=state.n.claims + fact.counted)
    return _move(state, entry, "done", outcome="ok", observation=fact.observation) if entry.ordinal else state


def late_evidence(state: RunState, entry: e.Entry, fact: e.LateEvidence) -> RunState:
    call = state.calls.get(entry.ordinal) if entry.turn == state.turn and not state.end else None
    if call is not None and call.status == "ready" and call.maybe_sent:
        call = call.to("unknown")  # a person said "again", but it is known now: it must not be sent twice
    if call is None or call.key != fact.key or call.status not in ("unknown", "executing", "not_executed"):
        return state
    late = {name: value for name, value in e.dump(fact).items() if name != "key"}
    return state.with_call(entry.ordinal, replace(call, late=late))


# What a fact of each kind (f), with its entry (x), makes of a state (s).
EVOLVE: dict[type[e.Fact], Callable[[RunState, e.Entry, Any], RunState]] = {
    e.RunStarted: run_started,
    e.SegmentStarted: lambda s, x, f: replace(s, segment=f.segment, segment_bytes=0, segment_seq=x.seq),
    e.ModelAsked: model_asked,
    e.ModelAnswered: model_answered,
    e.ModelFailed: model_failed,
    e.CallJudged: call_judged,
    e.ApprovalRequested: approval_requested,
    e.ApprovalClosed: approval_closed,
    e.Decided: decided,
    e.CallEdited: call_edited,
    e.CallStarted: call_started,
    e.CallEnded: call_ended,
    e.CallProbed: call_probed,
    e.CallSettled: call_settled,
    e.QuestionAsked: lambda s, x, f: _move(s, x, "waiting", question=True),
    e.QuestionAnswered: question_answered,
    e.NoteAdded: lambda s, x, f: s if s.end else replace(s, notes=[*s.notes, x.seq][-50:]),
    e.PauseAsked: lambda s, x, f: replace(s, paused=True),
    e.Resumed: lambda s, x, f: replace(_reopen(s), paused=False),
    e.LimitsChanged: lambda s, x, f: replace(_reopen(s), limits=Limits.load(f.limits)),
    e.CancelAsked: cancel_asked,
    e.FinishClaimed: lambda s, x, f: _move(s, x, "done", outcome="ok"),
    e.FinishRefused: finish_refused,
    e.RunStopped: lambda s, x, f: replace(s, stop=Stop(f.status, f.reason)),
    e.RunEnded: run_ended,
    e.LateEvidence: late_evidence,
    e.IncidentOpened: lambda s, x, f: s,
    e.IncidentClosed: lambda s, x, f: s,
    e.SignedOff: lambda s, x, f: replace(s, stop=None) if s.tampered else s,
    e.PayloadErased: lambda s, x, f: s,
}
