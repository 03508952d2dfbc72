"""Whatever a tool does, its flight lands an outcome that can be recorded."""

from queue import SimpleQueue
from typing import Any

import pytest

from runs.engine.toolspec import Effect
from runs.runner.flights import Flight, call_flight, proven
from runs.tools.base import Context, Kind, Outcome, Proof, tool


def landed(answer: Any, effect: Effect = Effect.OPAQUE, may_send: bool = True) -> Outcome:
    def odd(ctx: Context) -> Outcome:
        """Answer oddly."""
        if isinstance(answer, Exception):
            raise answer
        return answer

    made = tool(odd, effect=effect)
    flights: SimpleQueue[Flight] = SimpleQueue()
    call_flight(made, "run", "{}", "key", {}, lambda: may_send).launch(flights)
    return proven(made, flights.get(timeout=5).result)


ODD = {
    "nothing": None,
    "a plain dict": {"kind": "ok"},
    "data that is no JSON": Outcome(kind=Kind.OK, data={"at": object()}),
    "an exception": ValueError("secret token in a message"),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_odd_answer_of_an_effect_leaves_it_unknown_and_tells_no_secret(answer: Any) -> None:
    outcome = landed(answer)
    assert outcome.kind == Kind.UNKNOWN
    assert outcome.status.startswith("the tool raised") and "secret" not in outcome.status


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_odd_answer_of_a_read_is_fatal(answer: Any) -> None:
    assert landed(answer, Effect.READ).kind == Kind.FATAL


@pytest.mark.parametrize("kind", [Kind.RETRYABLE, Kind.FATAL])
def test_a_failed_effect_without_proof_is_unknown(kind: Kind) -> None:
    assert landed(Outcome(kind=kind)).kind == Kind.UNKNOWN
    assert landed(Outcome(kind=kind, proof=Proof.PRE_SEND)).kind == kind
    assert landed(Outcome(kind=kind), Effect.READ).kind == kind


def test_a_worker_whose_lease_is_over_sends_nothing() -> None:
    outcome = landed(AssertionError("was sent"), may_send=False)
    assert (outcome.kind, outcome.proof) == (Kind.RETRYABLE, Proof.PRE_SEND)
