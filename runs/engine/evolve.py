"""evolve(state, entry): what each kind of fact changes. A table kind -> function; unknown kinds change nothing.

Returns the new state and the ordinals of the calls touched: rows are written from what was touched, because one
append may both close a call and empty the turn.
"""

from collections.abc import Callable, Iterable
from typing import Any

from runs.engine import events as e
from runs.engine.limits import Limits
from runs.engine.state import Ask, CallState, RunState, Stop, replace

Evolved = tuple[RunState, tuple[int, ...]]
COUNTER_OF = {"repeats": "repeats", "failures": "failures", "refusals": "refusals", "claims": "claims"}


def evolve(state: RunState, entry: e.Entry) -> Evolved:
    """State after one more fact, and the ordinals of the calls that it touched."""
    state = replace(state, t=max(state.t, entry.t))
    return EVOLVE[type(entry.fact)](state, entry, entry.fact)


def fold(entries: Iterable[e.Entry], state: RunState | None = None) -> RunState:
    """The state that a whole history amounts to."""
    state = state or RunState()
    for entry in entries:
        state, _ = evolve(state, entry)
    return state


def is_progress(entry: e.Entry) -> bool:
    """True for what shows that a run gets on: an answer, a known outcome, a settlement, any act of a person."""
    fact = entry.fact
    known = isinstance(fact, e.CallEnded) and fact.outcome != "unknown"
    settled = isinstance(fact, e.CallSettled) and fact.proof != "class"
    return known or settled or entry.person is not None or isinstance(fact, e.ModelAnswered | e.LateEvidence)


def _count(state: RunState, **changes: int) -> RunState:
    return replace(state, n=replace(state.n, **changes))


def _touch(state: RunState, entry: e.Entry, call: CallState) -> Evolved:
    return state.with_call(entry.ordinal, call), (entry.ordinal,)


def _tally(state: RunState, call: CallState) -> RunState:
    """Count failures in a row, and effects by tool."""
    if call.status in ("invalid", "denied") or call.outcome in ("fatal", "retryable"):
        return _count(state, failures=state.n.failures + 1)
    state = _count(state, failures=0)
    if call.status == "done" and call.outcome == "ok" and call.effect not in ("read", "host"):
        state = replace(state, effects={**state.effects, call.tool: state.effects.get(call.tool, 0) + 1})
    return state


def run_started(state: RunState, entry: e.Entry, fact: e.RunStarted) -> Evolved:
    limits = Limits.load(fact.limits)
    return replace(state, limits=limits, checks=fact.checks, starter=fact.starter, unattended=fact.unattended), ()


def segment_started(state: RunState, entry: e.Entry, fact: e.SegmentStarted) -> Evolved:
    return replace(state, segment=fact.segment, segment_bytes=0, segment_seq=entry.seq), ()


def model_asked(state: RunState, entry: e.Entry, fact: e.ModelAsked) -> Evolved:
    tries = state.ask.tries if state.ask else 0
    state = replace(state, ask=Ask(attempt=fact.attempt, tries=tries, epoch=entry.epoch))
    if fact.attempt > 1:
        return state, ()
    signature = state.turn_signature
    repeats = state.n.repeats + 1 if signature and signature == state.signature else 0
    state = _count(state, turns=state.n.turns + 1, repeats=repeats)
    size = state.segment_bytes + fact.bytes
    return replace(state, turn=entry.turn, calls={}, notes=[], signature=signature, segment_bytes=size), ()


def model_answered(state: RunState, entry: e.Entry, fact: e.ModelAnswered) -> Evolved:
    state = _count(state, tokens=state.n.tokens + fact.tokens, ms=state.n.ms + fact.ms)
    return replace(state, ask=None, segment_bytes=state.segment_bytes + fact.bytes), ()


def model_failed(state: RunState, entry: e.Entry, fact: e.ModelFailed) -> Evolved:
    state = _count(state, ms=state.n.ms + fact.ms)
    ask = state.ask or Ask()
    return replace(state, ask=replace(ask, why=fact.reason, due=fact.retry_at, tries=ask.tries + 1)), ()


VERDICTS = {"allow": "ready", "ask": "waiting", "deny": "denied", "invalid": "invalid"}


def call_judged(state: RunState, entry: e.Entry, fact: e.CallJudged) -> Evolved:
    old = state.calls.get(entry.ordinal)
    judged: dict[str, Any] = {"rule": fact.rule, "exclude": fact.exclude, "standing": fact.standing}
    if old is not None and old.revision == entry.revision and old.status == "ready":
        # Judged again at its start: what may have been sent is in doubt, not denied.
        status = "unknown" if fact.verdict == "deny" and old.maybe_sent else VERDICTS[fact.verdict]
        call = old.to(status, **judged)
    else:
        base = replace(old, status="proposed") if old else CallState()
        call = replace(
            base, label=fact.label, tool=fact.tool, definition=fact.definition, effect=fact.effect, args=fact.args,
            objects=fact.objects, revision=entry.revision, **judged,
        )  # fmt: skip
        if fact.effect != "host" or fact.verdict in ("invalid", "deny"):
            call = call.to(VERDICTS[fact.verdict])
        elif fact.tool == "give_up":
            call, state = call.to("done", outcome="ok"), replace(state, gave_up=True)
    return _touch(_tally(state, call) if call.ended else state, entry, call)


def approval_requested(state: RunState, entry: e.Entry, fact: e.ApprovalRequested) -> Evolved:
    call = replace(
        state.calls[entry.ordinal], approval=fact.n, approval_status="pending", expires=fact.expires,
        action=fact.digest, rule=fact.rule, exclude=fact.exclude,
    )  # fmt: skip
    return _touch(state, entry, call)


def approval_closed(state: RunState, entry: e.Entry, fact: e.ApprovalClosed) -> Evolved:
    call = replace(state.calls[entry.ordinal], approval_status=fact.how)
    if fact.how in ("expired", "withdrawn") and call.status in ("waiting", "ready"):
        call = call.to("unknown") if call.maybe_sent else call.to(fact.how)
    return _touch(state, entry, call)


def decided(state: RunState, entry: e.Entry, fact: e.Decided) -> Evolved:
    call = state.calls[entry.ordinal]
    if fact.vote == "approve":
        return _touch(_count(state, refusals=0), entry, call.to("ready", approval_status="approved"))
    state = _count(state, refusals=state.n.refusals + 1)
    return _touch(state, entry, call.to("unknown" if call.maybe_sent else "refused", approval_status="rejected"))


def call_edited(state: RunState, entry: e.Entry, fact: e.CallEdited) -> Evolved:
    call = state.calls[entry.ordinal]
    return _touch(state, entry, call.to("proposed", revision=call.revision + 1, args=fact.args, edited=True))


def call_started(state: RunState, entry: e.Entry, fact: e.CallStarted) -> Evolved:
    call = state.calls[entry.ordinal]
    call = call.to(
        "executing", key=fact.key, attempt=fact.attempt, deadline=fact.deadline, epoch=entry.epoch,
        standing=fact.standing, started=call.started or entry.t, look_up=fact.look_up, resend_until=fact.resend_until,
        due=0,
    )  # fmt: skip
    if fact.via == "approval":
        call = replace(call, approval_status="consumed")
    return _touch(_count(state, calls=state.n.calls + 1), entry, call)


def call_ended(state: RunState, entry: e.Entry, fact: e.CallEnded) -> Evolved:
    call = state.calls[entry.ordinal]
    state = _count(state, ms=state.n.ms + fact.ms)
    again = call.attempt < state.limits.attempts and not state.cancel and not call.late
    if fact.outcome == "retryable" and again:
        return _touch(state, entry, call.to("ready", due=fact.retry_at))
    # After a person's "again", what the second request came to says nothing about the first, unless it is ok.
    if fact.outcome == "unknown" or ((call.late or call.maybe_sent) and fact.outcome != "ok"):
        doubt = call.to("unknown", outcome="unknown", due=fact.retry_at, maybe_sent=call.has_effect)
        return _touch(state, entry, doubt)
    return _done(state, entry, call, fact)


def _done(state: RunState, entry: e.Entry, call: CallState, fact: Any) -> Evolved:
    call = call.to("done", outcome=fact.outcome, observation=fact.observation, late={})
    met = sorted({*state.met, *fact.met})
    return _touch(_tally(replace(state, met=met), call), entry, call)


def call_probed(state: RunState, entry: e.Entry, fact: e.CallProbed) -> Evolved:
    call = state.calls[entry.ordinal]
    if fact.phase == "asked":
        return _touch(state, entry, replace(call, probes=fact.n, probing=fact.how, epoch=entry.epoch))
    misses = call.misses + (fact.how == "lookup" and fact.verdict == "not_found")
    return _touch(state, entry, replace(call, probing="", due=fact.due, misses=misses))


def call_settled(state: RunState, entry: e.Entry, fact: e.CallSettled) -> Evolved:
    call = state.calls[entry.ordinal]
    if fact.to == "done":
        state, touched = _done(state, entry, call, fact)
    elif fact.to == "ready":
        state, touched = _touch(
            state, entry, call.to("ready", due=0, probes=0, misses=0, maybe_sent=fact.proof != "class")
        )
    else:
        state, touched = _touch(
            state, entry, call.to(fact.to, outcome="", observation=fact.observation, maybe_sent=False)
        )
    if state.stop and state.stop.reason == "unknown_effect" and not state.having("unknown"):
        state = replace(state, stop=None)
    return state, touched


def question_asked(state: RunState, entry: e.Entry, fact: e.QuestionAsked) -> Evolved:
    return _touch(state, entry, state.calls[entry.ordinal].to("waiting", question=True))


def question_answered(state: RunState, entry: e.Entry, fact: e.QuestionAnswered) -> Evolved:
    call = state.calls[entry.ordinal].to("done", outcome="ok", observation=fact.observation)
    return _touch(_count(state, failures=0), entry, call)


def note_added(state: RunState, entry: e.Entry, fact: e.NoteAdded) -> Evolved:
    return replace(state, notes=[*state.notes, entry.seq][-50:]) if not state.end else state, ()


def pause_asked(state: RunState, entry: e.Entry, fact: e.PauseAsked) -> Evolved:
    return replace(state, paused=True), ()


def _reopen(state: RunState) -> RunState:
    """Clear a stop together with the counter that caused it, or it would stop again at once."""
    if state.stop and (counter := COUNTER_OF.get(state.stop.reason)):
        state = _count(state, **{counter: 0})
        state = replace(state, signature="") if counter == "repeats" else state
    ask = replace(state.ask, tries=0, due=0, why="resumed") if state.ask and state.ask.why and state.stop else state.ask
    return replace(state, stop=None, gave_up=False, ask=ask)


def resumed(state: RunState, entry: e.Entry, fact: e.Resumed) -> Evolved:
    return replace(_reopen(state), paused=False), ()


def limits_changed(state: RunState, entry: e.Entry, fact: e.LimitsChanged) -> Evolved:
    return replace(_reopen(state), limits=Limits.load(fact.limits)), ()


def cancel_asked(state: RunState, entry: e.Entry, fact: e.CancelAsked) -> Evolved:
    touched = state.having("waiting", "ready")
    moved = {o: c.to("unknown" if c.maybe_sent else "withdrawn") for o, c in touched.items()}
    stop = state.stop if state.tampered else None
    return replace(state, cancel=True, stop=stop, gave_up=False, calls={**state.calls, **moved}), tuple(moved)


def finish_claimed(state: RunState, entry: e.Entry, fact: e.FinishClaimed) -> Evolved:
    return _touch(state, entry, state.calls[entry.ordinal].to("done", outcome="ok"))


def finish_refused(state: RunState, entry: e.Entry, fact: e.FinishRefused) -> Evolved:
    state = _count(state, claims=state.n.claims + fact.counted)
    if not entry.ordinal:
        return state, ()
    call = state.calls[entry.ordinal].to("done", outcome="ok", observation=fact.observation)
    return _touch(state, entry, call)


def run_stopped(state: RunState, entry: e.Entry, fact: e.RunStopped) -> Evolved:
    return replace(state, stop=Stop(fact.status, fact.reason)), ()


def run_ended(state: RunState, entry: e.Entry, fact: e.RunEnded) -> Evolved:
    return replace(state, end=fact.status, stop=None, paused=False), ()


def late_evidence(state: RunState, entry: e.Entry, fact: e.LateEvidence) -> Evolved:
    call = state.calls.get(entry.ordinal) if entry.turn == state.turn and not state.end else None
    if call is not None and call.status == "ready" and call.maybe_sent:
        call = call.to("unknown")  # a person said "again", but it is known now: it must not be sent twice
    if call is None or call.key != fact.key or call.status not in ("unknown", "executing", "not_executed"):
        return state, ()
    late = {name: value for name, value in e.dump(fact).items() if name != "key"}
    return _touch(state, entry, replace(call, late=late))


def signed_off(state: RunState, entry: e.Entry, fact: e.SignedOff) -> Evolved:
    return replace(state, stop=None) if state.tampered else state, ()


def nothing(state: RunState, entry: e.Entry, fact: e.Fact) -> Evolved:
    return state, ()


EVOLVE: dict[type[e.Fact], Callable[[RunState, e.Entry, Any], Evolved]] = {
    e.RunStarted: run_started,
    e.SegmentStarted: segment_started,
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
    e.QuestionAsked: question_asked,
    e.QuestionAnswered: question_answered,
    e.NoteAdded: note_added,
    e.PauseAsked: pause_asked,
    e.Resumed: resumed,
    e.LimitsChanged: limits_changed,
    e.CancelAsked: cancel_asked,
    e.FinishClaimed: finish_claimed,
    e.FinishRefused: finish_refused,
    e.RunStopped: run_stopped,
    e.RunEnded: run_ended,
    e.LateEvidence: late_evidence,
    e.IncidentOpened: nothing,
    e.SignedOff: signed_off,
    e.PayloadErased: nothing,
}
