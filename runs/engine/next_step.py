"""next_step: what a run needs next, from what is recorded. Crash, wait, cancel and resume are the same question.

The rules stand in `RULES` in their order; the first that answers wins (spine.md 1). `held` names what this worker has
in the air: ordinals of calls, and 0 for the request to the model. Everything else that is recorded as begun was begun
by somebody who is gone, and is in doubt.
"""

from collections.abc import Callable

from runs.engine import events as e
from runs.engine.frozen import Frozen
from runs.engine.limits import SECOND
from runs.engine.machines import STOP_REASONS
from runs.engine.messages import ANSWER
from runs.engine.state import CallState, RunState

ASK = 0
BEAT = SECOND
FATAL_ASKS = {
    "refusal": "refused", "auth": "auth", "billing": "billing", "invalid_request": "request",
    "context_overflow": "context", "malformed:stop:context_full": "context",
}  # fmt: skip


class Record(Frozen):
    """Facts that follow from what is recorded; they need nobody's leave."""

    entries: tuple[e.Entry, ...]


class AskModel(Frozen):
    """Send the conversation to the model; attempt 1 begins a turn. `longest` bounds the answer, in tokens."""

    attempt: int
    new_segment: bool = False
    longest: int = ANSWER


class Start(Frozen):
    """Judge these calls once more and start them."""

    ordinals: tuple[int, ...]


class Probe(Frozen):
    """Find out what became of an unknown call: `how` is resend or lookup."""

    ordinal: int
    how: str


class Wait(Frozen):
    """Nothing to do before `until` (None: not by itself) because of `why`."""

    until: int | None
    why: str


class Stop(Frozen):
    """Stop with a reason of `STOP_REASONS`."""

    reason: str
    detail: str = ""


Step = Record | AskModel | Start | Probe | Wait | Stop


class Situation(Frozen):
    """What the rules look at."""

    state: RunState
    now: int
    held: frozenset[int]
    crashes: int
    unknown: dict[int, CallState]


def next_step(state: RunState, now: int, held: frozenset[int] = frozenset(), crashes: int = 0) -> Step:
    """The next step of a run at `now` (microseconds); total: there is always an answer."""
    situation = Situation(state, now, held, crashes, state.having("unknown"))
    return next(step for rule in RULES if (step := rule(situation)) is not None)


def ended(s: Situation) -> Step | None:
    """0: after the end nothing follows by itself."""
    return Wait(None, "ended") if s.state.end else None


def truth(s: Situation) -> Step | None:
    """1: what is already true but not yet recorded."""
    truths = ((o, call, _truth_of(s, o, call)) for o, call in sorted(s.state.calls.items()))
    found = [e.Entry(fact, s.state.turn, o, call.revision) for o, call, fact in truths if fact]
    ask = s.state.ask
    if ask and not ask.why and ASK not in s.held:
        found.append(e.Entry(e.ModelFailed("abandoned"), s.state.turn))
    return Record(tuple(found)) if found else None


def _truth_of(s: Situation, ordinal: int, call: CallState) -> e.Fact | None:
    if call.status == "executing" and ordinal not in s.held:
        return e.CallEnded("unknown", status="worker lost", after_cancel=s.state.cancel)
    if call.probing and ordinal not in s.held:
        due = s.state.limits.probe_due(s.now, call.probes)
        return e.CallProbed(call.probes, call.probing, "told", "lost", due)
    if call.status in ("unknown", "not_executed") and call.late and not call.probing:
        return e.CallSettled("done", "late_evidence", after_cancel=s.state.cancel, **call.late)
    if call.status == "unknown" and call.effect in ("read", "repeatable") and ordinal not in s.held:
        again = call.attempt < s.state.limits.attempts and not s.state.cancel
        return e.CallSettled("ready", "class") if again else e.CallSettled("done", "class", outcome="fatal")
    if call.status == "unknown" and call.misses >= 2 and not call.probing:
        return e.CallSettled("not_executed", "quiesced_lookup", presumed=True)
    return e.ApprovalClosed(call.approval, "expired") if call.pending and 0 < call.expires <= s.now else None


def cancel(s: Situation) -> Step | None:
    """2: cancelling is not undoing: what flies is awaited, what is unknown is looked up or put to a person."""
    if not s.state.cancel or s.state.tampered:
        return None
    if step := flying(s) or _probe(s, cancelled=True):
        return step
    if s.unknown:
        return Wait(None, "stopped") if s.state.stop else Stop("unknown_effect", _named(s.unknown))
    return Record((e.Entry(e.RunEnded("cancelled")),))


def stopped_or_paused(s: Situation) -> Step | None:
    """3: only expiry goes on by itself."""
    if not (s.state.stop or s.state.paused):
        return None
    why = "stopped" if s.state.stop else "paused"
    return flying(s) or Wait(_expiry(s), why)


def crashed(s: Situation) -> Step | None:
    """4: a run that keeps killing its workers is put to people."""
    return Stop("crashes") if s.crashes >= s.state.limits.crashes and not s.held else None


def doubt_first(s: Situation) -> Step | None:
    """5: nothing new begins with an effect in doubt that a machine can clear up now."""
    probe = _probe(s)
    return probe if isinstance(probe, Probe) else None


def start(s: Situation) -> Step | None:
    """6: what may start, within the limits; a limit stops the run only when nothing flies."""
    ordinals = _startable(s)
    if not ordinals:
        return None
    if reason := _used_up(s.state, "calls", "time"):
        return flying(s) or Stop(reason)
    return Start(ordinals[: max(1, s.state.limits.calls - s.state.n.calls)])


def flying(s: Situation) -> Step | None:
    """7: something of ours is in the air."""
    return Wait(s.now + BEAT, "flying") if s.held else None


def later(s: Situation) -> Step | None:
    """8: a back-off or a probe that is not due yet."""
    probe = _probe(s)
    dues = [call.due for call in s.state.having("ready").values() if call.due > s.now]
    if isinstance(probe, Wait) and probe.until is not None:
        return Wait(min([probe.until, *dues]), "probe")
    return Wait(min(dues), "backoff") if dues else None


def people(s: Situation) -> Step | None:
    """9: people are asked; no worker waits for them."""
    return Wait(_expiry(s), "people") if s.state.having("waiting") else None


def unknown_effect(s: Situation) -> Step | None:
    """10: no machine can tell what happened: a person must."""
    return Stop("unknown_effect", _named(s.unknown)) if s.unknown else None


def gave_up(s: Situation) -> Step | None:
    """11: the model gave up, and says why."""
    return Stop("give_up") if s.state.gave_up else None


def turn_complete(s: Situation) -> Step | None:
    """12: everything of the turn is settled: limits, then the next question to the model."""
    if s.state.ask:
        return None
    state, signature = s.state, s.state.turn_signature
    repeated = state.n.repeats + 2 if signature and signature == state.signature else 1
    if reason := _used_up(state, "turns", "time", "repeats", "failures", "refusals", "claims", repeats=repeated):
        return Stop(reason)
    return AskModel(1, new_segment=not state.segment or state.segment_bytes >= state.limits.segment_bytes)


def ask_again(s: Situation) -> Step | None:
    """13: the request to the model failed: for good, for now, or worth another attempt."""
    ask = s.state.ask
    assert ask is not None and ask.why, "an open request is in the air or has failed"
    if ask.why in FATAL_ASKS:
        return Stop(FATAL_ASKS[ask.why])
    if ask.tries >= s.state.limits.asks:
        return Stop("model", ask.why)
    if ask.due > s.now:
        return Wait(ask.due, "backoff")
    cut = ask.why == "malformed:truncated"
    return AskModel(ask.attempt + 1, longest=ANSWER << min(ask.tries, 2) if cut else ANSWER)


RULES: tuple[Callable[[Situation], Step | None], ...] = (
    ended,
    truth,
    cancel,
    stopped_or_paused,
    crashed,
    doubt_first,
    start,
    flying,
    later,
    people,
    unknown_effect,
    gave_up,
    turn_complete,
    ask_again,
)


def status_of(state: RunState, step: Step, leased: bool) -> str:
    """Status shown for a run whose next step, without a lease, would be `step` (DESIGN.md 3)."""
    if state.end or state.stop:
        return state.end or state.stop.status  # type: ignore[union-attr]
    if state.cancel or state.paused:
        return "cancelling" if state.cancel else "paused"
    if leased:
        return "running"
    if not isinstance(step, Wait) or step.why in ("backoff", "probe"):
        return "queued"
    return "waiting_approval" if any(call.pending for call in state.calls.values()) else "waiting_input"


def stop_entry(state: RunState, stop: Stop) -> e.Entry:
    """The fact of a stop, with what it leaves unfinished."""
    fact = e.RunStopped(STOP_REASONS[stop.reason][0], stop.reason, unfinished(state), stop.detail)
    return e.Entry(fact, state.turn)


def unfinished(state: RunState) -> list[str]:
    """The calls of the open turn to which something may still happen, in words."""
    return [f"call:{state.turn}.{o} {c.tool} {c.status}" for o, c in sorted(state.calls.items()) if not c.ended]


def _used_up(state: RunState, *reasons: str, **counted: int) -> str | None:
    """The first of these limits that is reached."""
    used, limits = {**vars(state.n), "time": state.n.ms, **counted}, {**dict(state.limits), "time": state.limits.ms}
    return next((reason for reason in reasons if used[reason] >= limits[reason]), None)


def _probe(s: Situation, cancelled: bool = False) -> Probe | Wait | None:
    """The probe that is due, or the wait for the earliest one; None if no machine can tell anything more."""
    waits = []
    for ordinal, call in s.unknown.items():
        if call.probing or ordinal in s.held or (found := call.probe(s.now, cancelled)) is None:
            continue
        how, due = found
        if due <= s.now:
            return Probe(ordinal, how)
        waits.append(due)
    return Wait(min(waits), "probe") if waits else None


def _startable(s: Situation) -> tuple[int, ...]:
    """Reads together, at most one effect, in the model's order (siblings: DESIGN.md 7)."""
    chosen: list[int] = []
    calls = s.state.calls
    effect_in_the_way = any(c.has_effect for c in s.state.having("executing", "unknown").values())
    for ordinal, call in s.state.having("ready").items():
        if call.due > s.now or ordinal in s.held or (call.has_effect and effect_in_the_way):
            continue
        in_flight = [calls[o] for o in chosen] + list(s.state.having("executing").values())
        earlier = [c for o, c in calls.items() if o < ordinal and not c.ended and o not in chosen]
        if any(_exclude(call, other) for other in in_flight + earlier):
            continue
        chosen.append(ordinal)
        effect_in_the_way = effect_in_the_way or call.has_effect
    return tuple(chosen)


def _exclude(call: CallState, other: CallState) -> bool:
    return (call.has_effect or other.has_effect) and not set(call.objects).isdisjoint(other.objects)


def _expiry(s: Situation) -> int | None:
    return min((c.expires for c in s.state.calls.values() if c.pending and c.expires), default=None)


def _named(calls: dict[int, CallState]) -> str:
    return ", ".join(call.tool for call in calls.values())
