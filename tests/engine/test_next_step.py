"""The rules of spine.md 1, one class each: a table of situations and the step that follows."""

import pytest

from runs.engine import events as e
from runs.engine.limits import SECOND, Limits
from runs.engine.next_step import (
    RULES,
    AskModel,
    Probe,
    Record,
    Start,
    Step,
    Stop,
    Wait,
    next_step,
    status_of,
    stop_entry,
)
from runs.engine.state import Ask, Counts, RunState
from runs.engine.state import Stop as Stopped
from tests.engine.making import NOW, call, pending, run

LATER, BEAT = NOW + 9 * SECOND, NOW + SECOND
LATE = {"outcome": "ok"}
Case = tuple[RunState, Step] | tuple[RunState, Step, frozenset[int]] | tuple[RunState, Step, frozenset[int], int]


def flies(*ordinals: int) -> frozenset[int]:
    return frozenset(ordinals)


def follows(case: Case) -> None:
    state, wanted, *more = case
    assert next_step(state, NOW, *more) == wanted


def recorded(state: RunState, held: frozenset[int] = frozenset()) -> list[e.Fact]:
    step = next_step(state, NOW, held)
    assert isinstance(step, Record)
    return [entry.fact for entry in step.entries]


def test_the_rules_stand_in_the_order_of_the_contract() -> None:
    assert [rule.__name__ for rule in RULES] == [
        "ended",
        "truth",
        "cancel",
        "stopped_or_paused",
        "crashed",
        "doubt_first",
        "start",
        "flying",
        "later",
        "people",
        "unknown_effect",
        "gave_up",
        "turn_complete",
        "ask_again",
    ]


class TestRule0Ended:
    @pytest.mark.parametrize(
        "state", [run(end="failed"), run(call(), end="cancelled"), run(call("executing"), end="succeeded", cancel=True)]
    )
    def test_nothing_follows(self, state: RunState) -> None:
        assert next_step(state, NOW) == Wait(None, "ended")


class TestRule1Truth:
    def test_a_call_that_nobody_holds_is_unknown(self) -> None:
        assert recorded(run(call("executing", "opaque"))) == [e.CallEnded("unknown", status="worker lost")]

    def test_a_call_that_is_held_is_left_alone(self) -> None:
        assert next_step(run(call("executing", "opaque")), NOW, flies(1)) == Wait(BEAT, "flying")

    def test_a_probe_that_nobody_holds_is_lost(self) -> None:
        state = run(call("unknown", "keyed", probing="resend", probes=1, resend_until=LATER))
        assert recorded(state) == [e.CallProbed(1, "resend", "told", "lost", NOW + 2 * SECOND)]

    @pytest.mark.parametrize("effect", ["read", "repeatable"])
    @pytest.mark.parametrize(
        ("attempt", "cancel", "fact"),
        [
            (1, False, e.CallSettled("ready", "class")),
            (2, False, e.CallSettled("ready", "class")),
            (3, False, e.CallSettled("done", "class", outcome="fatal")),
            (1, True, e.CallSettled("done", "class", outcome="fatal")),
        ],
    )
    def test_what_may_be_repeated_is(self, effect: str, attempt: int, cancel: bool, fact: e.Fact) -> None:
        assert recorded(run(call("unknown", effect, attempt=attempt), cancel=cancel)) == [fact]

    @pytest.mark.parametrize("effect", ["keyed", "lookup", "opaque"])
    def test_what_may_not_be_repeated_is_not(self, effect: str) -> None:
        assert not isinstance(next_step(run(call("unknown", effect, attempt=1)), NOW), Record)

    @pytest.mark.parametrize("effect", ["read", "repeatable", "keyed", "lookup", "opaque"])
    def test_late_evidence_settles_what_is_unknown(self, effect: str) -> None:
        fact = e.CallSettled("done", "late_evidence", outcome="ok")
        assert recorded(run(call("unknown", effect, late=LATE))) == [fact]

    def test_late_evidence_waits_for_the_probe_that_is_out(self) -> None:
        state = run(call("unknown", "keyed", late=LATE, probing="resend", probes=1))
        assert next_step(state, NOW, flies(1)) == Wait(BEAT, "flying")

    def test_two_quiet_look_ups_presume_that_nothing_happened(self) -> None:
        state = run(call("unknown", "lookup", misses=2, look_up=True))
        assert recorded(state) == [e.CallSettled("not_executed", "quiesced_lookup", presumed=True)]
        assert not isinstance(next_step(run(call("unknown", "lookup", misses=1, look_up=True)), NOW), Record)

    @pytest.mark.parametrize(("expires", "closed"), [(NOW, True), (NOW - 1, True), (NOW + 1, False), (0, False)])
    def test_an_approval_expires_only_when_its_time_is_over(self, expires: int, closed: bool) -> None:
        step = next_step(run(pending(expires=expires)), NOW)
        assert (
            step == Record((e.Entry(fact=e.ApprovalClosed(1, "expired"), turn=1, ordinal=1, revision=1),))
        ) is closed

    def test_a_request_to_the_model_that_nobody_holds_was_abandoned(self) -> None:
        assert recorded(run(ask=Ask())) == [e.ModelFailed("abandoned")]
        assert next_step(run(ask=Ask()), NOW, flies(0)) == Wait(BEAT, "flying")

    def test_all_of_it_is_recorded_at_once_in_the_models_order(self) -> None:
        state = run(call("executing"), call("executing", "keyed"), pending(expires=1), ask=Ask())
        kinds = ["CallEnded", "CallEnded", "ApprovalClosed", "ModelFailed"]
        assert [fact.kind for fact in recorded(state)] == kinds

    @pytest.mark.parametrize(
        "state", [run(call("executing"), paused=True), run(call("executing"), stop=Stopped("a", "b"))]
    )
    def test_a_pause_or_a_stop_does_not_hide_it(self, state: RunState) -> None:
        assert isinstance(next_step(state, NOW), Record)


DOUBT = call("unknown", "opaque", maybe_sent=True, tool="mail")
CANCELLED = Record((e.Entry(fact=e.RunEnded("cancelled")),))
CANCEL: dict[str, Case] = {
    "nothing is left": (run(cancel=True), CANCELLED),
    "all calls have ended": (run(call("done"), call("withdrawn"), cancel=True), CANCELLED),
    "something flies": (run(call("executing", "keyed"), cancel=True), Wait(BEAT, "flying"), flies(1)),
    "the model is being asked": (run(ask=Ask(), cancel=True), Wait(BEAT, "flying"), flies(0)),
    "a resend would cause the effect": (
        run(call("unknown", "keyed", resend_until=LATER, tool="pay"), cancel=True),
        Stop("unknown_effect", "pay"),
    ),
    "a look-up is due": (run(call("unknown", "lookup", look_up=True), cancel=True), Probe(1, "lookup")),
    "a look-up comes later": (
        run(call("unknown", "lookup", look_up=True, due=LATER), cancel=True),
        Wait(LATER, "probe"),
    ),
    "only a person can tell": (run(DOUBT, cancel=True), Stop("unknown_effect", "mail")),
    "a person was asked to tell": (
        run(DOUBT, cancel=True, stop=Stopped("needs_human", "unknown_effect")),
        Wait(None, "stopped"),
    ),
    "it is paused too": (run(cancel=True, paused=True), CANCELLED),
    "stored data was changed": (run(cancel=True, stop=Stopped("needs_human", "integrity")), Wait(None, "stopped")),
}


class TestRule2Cancel:
    @pytest.mark.parametrize("case", CANCEL.values(), ids=CANCEL.keys())
    def test_cancelling_is_not_undoing(self, case: Case) -> None:
        follows(case)


STOPPED = Stopped("stalled", "repeats")
PAUSE: dict[str, Case] = {
    "paused": (run(call(), paused=True), Wait(None, "paused")),
    "stopped": (run(call(), stop=STOPPED), Wait(None, "stopped")),
    "paused with an expiry": (run(pending(expires=LATER), paused=True), Wait(LATER, "paused")),
    "stopped with two": (run(pending(expires=LATER + 1), pending(expires=LATER), stop=STOPPED), Wait(LATER, "stopped")),
    "paused while something flies": (run(call("executing"), paused=True), Wait(BEAT, "flying"), flies(1)),
    "paused with a probe due": (run(call("unknown", "keyed", resend_until=LATER), paused=True), Wait(None, "paused")),
    "paused with a failed ask": (run(ask=Ask(why="429"), paused=True), Wait(None, "paused")),
    "stopped after three crashes": (run(call(), stop=STOPPED), Wait(None, "stopped"), flies(), 3),
}


class TestRule3StoppedOrPaused:
    @pytest.mark.parametrize("case", PAUSE.values(), ids=PAUSE.keys())
    def test_nothing_new_begins(self, case: Case) -> None:
        follows(case)


class TestRule4Crashes:
    @pytest.mark.parametrize(("crashes", "step"), [(2, Start((1,))), (3, Stop("crashes")), (7, Stop("crashes"))])
    def test_a_run_that_kills_its_workers_is_put_to_people(self, crashes: int, step: Step) -> None:
        assert next_step(run(call()), NOW, flies(), crashes) == step

    def test_not_while_something_flies(self) -> None:
        assert next_step(run(call("executing")), NOW, flies(1), 3) == Wait(BEAT, "flying")


PROBES: dict[str, Case] = {
    "resend while the key is young": (run(call("unknown", "keyed", resend_until=LATER)), Probe(1, "resend")),
    "the key is too old": (run(call("unknown", "keyed", resend_until=NOW, tool="pay")), Stop("unknown_effect", "pay")),
    "too old, but it can be looked up": (
        run(call("unknown", "keyed", resend_until=NOW, look_up=True)),
        Probe(1, "lookup"),
    ),
    "a look-up before the deadline would prove nothing": (
        run(call("unknown", "lookup", look_up=True, deadline=LATER)),
        Wait(LATER, "probe"),
    ),
    "four probes were enough": (
        run(call("unknown", "keyed", resend_until=LATER, probes=4, tool="pay")),
        Stop("unknown_effect", "pay"),
    ),
    "before a start": (run(call("unknown", "keyed", resend_until=LATER), call()), Probe(1, "resend")),
    "one is out": (run(call("unknown", "keyed", resend_until=LATER, probing="resend")), Wait(BEAT, "flying"), flies(1)),
}


class TestRule5DoubtFirst:
    @pytest.mark.parametrize("case", PROBES.values(), ids=PROBES.keys())
    def test_a_machine_asks_first(self, case: Case) -> None:
        follows(case)


A, B = "order:1", "order:2"
SIBLINGS: dict[str, Case] = {
    "reads run together": (run(call(obj=A), call(obj=A), call(obj=B)), Start((1, 2, 3))),
    "one effect at a time, in order": (run(call("ready", "keyed"), call("ready", "opaque")), Start((1,))),
    "reads beside one effect": (
        run(call("ready", "keyed", obj=A), call(obj=B), call("ready", "opaque")),
        Start((1, 2)),
    ),
    "a read and an effect on one object": (run(call(obj=A), call("ready", "keyed", obj=A)), Start((1,))),
    "an effect and a read on one object": (run(call("ready", "keyed", obj=A), call(obj=A)), Start((1,))),
    "behind a waiting effect on the same object": (run(pending(obj=A), call(obj=A)), Wait(None, "people")),
    "behind a waiting effect on another object": (run(pending(obj=A), call("ready", "keyed", obj=B)), Start((2,))),
    "behind a waiting read on the same object": (
        run(pending("read", obj=A), call("ready", "keyed", obj=A)),
        Wait(None, "people"),
    ),
    "before a waiting effect": (run(call(obj=A), pending(obj=A)), Start((1,))),
    "no effect beside one in flight": (
        run(call("executing", "keyed"), call("ready", "opaque")),
        Wait(BEAT, "flying"),
        flies(1),
    ),
    "a read beside an effect in flight": (run(call("executing", "keyed", obj=A), call(obj=B)), Start((2,)), flies(1)),
    "no effect while one is unknown": (
        run(call("unknown", "opaque", tool="mail"), call("ready", "keyed")),
        Stop("unknown_effect", "mail"),
    ),
    "a read while an effect is unknown": (run(call("unknown", "opaque", obj=A), call(obj=B)), Start((2,))),
    "what is not due stays": (run(call(due=LATER), call()), Start((2,))),
    "what is held stays": (run(call("executing"), call()), Start((2,)), flies(1)),
    "a denied sibling is no obstacle": (
        run(call("denied", "keyed", obj=A), call("ready", "keyed", obj=A)),
        Start((2,)),
    ),
}


class TestRule6Start:
    @pytest.mark.parametrize("case", SIBLINGS.values(), ids=SIBLINGS.keys())
    def test_siblings(self, case: Case) -> None:
        follows(case)

    @pytest.mark.parametrize(
        ("used", "reason"),
        [(Counts(calls=60), "calls"), (Counts(ms=30 * 60 * 1000), "time"), (Counts(calls=61), "calls")],
    )
    def test_a_limit_stops_before_a_start(self, used: Counts, reason: str) -> None:
        assert next_step(run(call(), n=used), NOW) == Stop(reason)
        assert next_step(run(call("executing"), call(), n=used), NOW, flies(1)) == Wait(BEAT, "flying")

    def test_the_last_calls_of_the_limit_are_used(self) -> None:
        assert next_step(run(call(), call(), call(), n=Counts(calls=58)), NOW) == Start((1, 2))


LATER_CASES: dict[str, Case] = {
    "a back-off": (run(call(due=LATER)), Wait(LATER, "backoff")),
    "the earliest": (run(call(due=LATER + 1), call(due=LATER)), Wait(LATER, "backoff")),
    "a probe": (run(call("unknown", "keyed", due=LATER, resend_until=LATER + 1)), Wait(LATER, "probe")),
    "a back-off before a probe": (
        run(call("unknown", "keyed", due=LATER + 1, resend_until=LATER + 9), call(due=LATER)),
        Wait(LATER, "probe"),
    ),
    "before people": (run(call(due=LATER), pending()), Wait(LATER, "backoff")),
    "but not before what flies": (run(call("executing"), call(due=LATER)), Wait(BEAT, "flying"), flies(1)),
}


class TestRules7And8FlyingAndLater:
    @pytest.mark.parametrize("case", LATER_CASES.values(), ids=LATER_CASES.keys())
    def test_the_wait_is_for_the_next_thing(self, case: Case) -> None:
        follows(case)


PEOPLE: dict[str, Case] = {
    "an approval": (run(pending()), Wait(None, "people")),
    "an approval with expiry": (run(pending(expires=LATER)), Wait(LATER, "people")),
    "a question": (run(call("waiting", "host", question=True)), Wait(None, "people")),
    "before an unknown effect stops the run": (run(DOUBT, pending()), Wait(None, "people")),
    "after all": (run(DOUBT), Stop("unknown_effect", "mail")),
    "several in doubt are named": (
        run(DOUBT, call("unknown", "keyed", tool="pay")),
        Stop("unknown_effect", "mail, pay"),
    ),
    "the model gave up": (run(call("done", "host"), gave_up=True), Stop("give_up")),
}


class TestRules9To11People:
    @pytest.mark.parametrize("case", PEOPLE.values(), ids=PEOPLE.keys())
    def test_people_are_awaited_or_called(self, case: Case) -> None:
        follows(case)


def used(**counts: int) -> RunState:
    return run(call("done"), n=Counts(**counts))


def repeated(times: int) -> RunState:
    same = run(call("done", args="x", observation="y"))
    return run(*same.calls.values(), signature=same.turn_signature, n=Counts(repeats=times - 2))


TURN: dict[str, Case] = {
    "the next turn": (run(call("done"), call("refused")), AskModel(1)),
    "the first turn opens a segment": (RunState(), AskModel(1, new_segment=True)),
    "a full segment": (run(call("done"), segment_bytes=400_000), AskModel(1, new_segment=True)),
    "not yet full": (run(call("done"), segment_bytes=399_999), AskModel(1)),
    "turns": (used(turns=20), Stop("turns")),
    "one turn left": (used(turns=19), AskModel(1)),
    "active time": (used(ms=1_800_000), Stop("time")),
    "failures": (used(failures=5), Stop("failures")),
    "refusals": (used(refusals=3), Stop("refusals")),
    "claims": (used(claims=3), Stop("claims")),
    "the same turn for the second time": (repeated(2), AskModel(1)),
    "the same turn for the third time": (repeated(3), Stop("repeats")),
    "a budget before a stall": (used(turns=20, failures=5), Stop("turns")),
}


class TestRule12TurnComplete:
    @pytest.mark.parametrize("case", TURN.values(), ids=TURN.keys())
    def test_limits_then_the_next_question(self, case: Case) -> None:
        follows(case)


ASKS: dict[str, Case] = {
    "again": (run(ask=Ask(1, why="429", tries=1)), AskModel(2)),
    "later": (run(ask=Ask(1, why="429", tries=1, due=LATER)), Wait(LATER, "backoff")),
    "the fourth failure was the last": (run(ask=Ask(4, why="malformed:x", tries=4)), Stop("model", "malformed:x")),
    "a refusal is final": (run(ask=Ask(1, why="refusal", tries=1)), Stop("refused")),
    "a bad key is final": (run(ask=Ask(1, why="auth", tries=1)), Stop("auth")),
    "a person resumed": (run(ask=Ask(4, why="resumed")), AskModel(5)),
}


class TestRule13AskAgain:
    @pytest.mark.parametrize("case", ASKS.values(), ids=ASKS.keys())
    def test_a_failed_request(self, case: Case) -> None:
        follows(case)


WAITING = run(pending())
STATUS: dict[str, tuple[RunState, bool, str]] = {
    "an end before all": (run(end="failed", cancel=True, paused=True, stop=STOPPED), True, "failed"),
    "a stop before a cancel": (run(cancel=True, stop=Stopped("needs_human", "unknown_effect")), True, "needs_human"),
    "a cancel before a pause": (run(cancel=True, paused=True), True, "cancelling"),
    "a pause before a lease": (run(paused=True), True, "paused"),
    "a lease before what waits": (WAITING, True, "running"),
    "runnable": (run(call()), False, "queued"),
    "a back-off is queued": (run(call(due=LATER)), False, "queued"),
    "a probe is queued": (run(call("unknown", "keyed", due=LATER, resend_until=LATER + 1)), False, "queued"),
    "an approval": (WAITING, False, "waiting_approval"),
    "a question": (run(call("waiting", "host", question=True)), False, "waiting_input"),
    "an approval before a question": (
        run(call("waiting", "host", question=True), pending()),
        False,
        "waiting_approval",
    ),
}


class TestStatus:
    @pytest.mark.parametrize(("state", "leased", "status"), STATUS.values(), ids=STATUS.keys())
    def test_has_its_order(self, state: RunState, leased: bool, status: str) -> None:
        assert status_of(state, next_step(state, NOW), leased) == status


def test_a_stop_lists_what_it_leaves_unfinished() -> None:
    entry = stop_entry(run(call("done"), pending(tool="pay"), DOUBT), Stop("unknown_effect", "mail"))
    unfinished = ["call:1.2 pay waiting", "call:1.3 mail unknown"]
    assert entry.fact == e.RunStopped("needs_human", "unknown_effect", unfinished, "mail")


def test_limits_are_those_of_the_run() -> None:
    assert next_step(run(call("done"), n=Counts(turns=2), limits=Limits(turns=2)), NOW) == Stop("turns")
