"""Every way in which the remote can fail an effect: what is then known is said, and nothing is done twice."""

from __future__ import annotations

from tests.stack import until
from tests.stories.people import ENDS, House

# fault of the order service -> (refunds that happened at last, attempts that were started)
KEYED = {
    "delay": (1, 1),
    "slow_reply": (1, 1),
    "throttle": (1, 2),
    "error": (1, 1),
    "reply_lost": (1, 1),
    "cut": (1, 1),
    "late": (1, 1),
    "garbage": (1, 1),
    "half_reply": (1, 1),
    "broken": (0, 1),
}
PROVEN = ("delay", "slow_reply", "throttle")  # the reply said what happened; all others leave it open


def armed(house: House, agent: str, faults: dict[str, str], path: str, **inputs: str) -> dict[str, int]:
    """A run for each fault, which meets it after the approval."""
    runs = dict(zip(faults, house.start_all([(agent, dict(inputs)) for _ in faults]), strict=True))
    for name, run in runs.items():
        fault = {"seconds": 0.7, "retry_after": 1, "path": path, "contains": house.order_of(run)}
        house.stack.faults.arm(faults[name], **fault)
    house.approve_all(list(runs.values()))
    return runs


def test_a_keyed_effect_is_settled_by_its_key_whatever_becomes_of_the_reply(house: House) -> None:
    runs = armed(house, "refund", {kind: kind for kind in KEYED}, path="/refunds", amount="80.00")
    for kind, run in runs.items():
        effects, attempts = KEYED[kind]
        assert house.reached(run, *ENDS, "needs_human") == ("succeeded" if effects else "needs_human"), kind
        assert len(house.effects_of(run)) == effects, kind
        assert len([b for b in house.bodies(run, "CallStarted") if b["via"] != "allow"]) == attempts, kind
        doubted = [b for b in house.bodies(run, "CallEnded") if b["outcome"] == "unknown"]
        assert len(doubted) == (kind not in PROVEN), (kind, "unknown is said where it is unknown")
        settled = [(b["to"], b["proof"]) for b in house.bodies(run, "CallSettled")]
        assert settled == ([("done", "resend")] if doubted and effects else []), kind
        assert [a["status"] for a in house.approvals(run)] == ["consumed"], (kind, "asked once, counted once")
    until(lambda: len(house.effects_of(runs["late"])) == 1, what="the late request found its key used")
    house.one_effect_each(list(runs.values()))

    broken = runs["broken"]  # kept under the key as failed: a resend is told the same for ever, so a person is asked
    probes = [b["verdict"] for b in house.bodies(broken, "CallProbed") if b["phase"] == "told"]
    assert probes == ["inconclusive"] * 4
    assert house.bodies(broken, "RunStopped")[-1]["reason"] == "unknown_effect"
    why = {"verdict": "not_happened", "why": "The ledger has nothing."}
    house.ok("approvals.attest", run_id=broken, turn=2, ordinal=1, person="reviewer", **why)
    until(lambda: house.bodies(broken, "RunStopped")[-1]["reason"] == "give_up", what="the agent is told and gives up")


def test_an_opaque_effect_is_never_sent_again_by_itself(house: House) -> None:
    sent = {"reply_lost": 1, "garbage": 1, "half_reply": 1, "cut": 0, "error": 0}
    runs = armed(house, "messenger", {kind: kind for kind in [*sent, "throttle"]}, path="/messages", text="Hello.")
    assert house.reached(runs["throttle"], *ENDS) == "succeeded", "a 429 proves that nothing happened"
    for kind, count in sent.items():
        run = runs[kind]
        assert house.reached(run, *ENDS, "needs_human") == "needs_human", kind
        assert house.call(run, "send_message")["status"] == "unknown" and house.bodies(run, "CallProbed") == []
        assert len(house.effects_of(run)) == count, kind
    house.one_effect_each(list(runs.values()))


def test_a_cancelled_run_with_an_effect_in_doubt_ends_only_after_a_person_has_looked(house: House) -> None:
    faults = {"happened": "reply_lost", "not_happened": "cut"}
    runs = armed(house, "messenger", faults, path="/messages", text="Hello.")
    for verdict, run in runs.items():
        house.reached(run, "needs_human")
        house.ok("runs.cancel", run_id=run, person="operator", why="Too late.")
        until(lambda run=run: len(house.bodies(run, "RunStopped")) == 2, what="still in doubt, so still a person's")
        assert house.status(run) == "needs_human"
        place = {"run_id": run, "turn": 1, "ordinal": 1, "person": "reviewer", "why": "I looked."}
        assert house.act("approvals.attest", **place, verdict="again").status == 409, "nothing is sent after a cancel"
        house.ok("approvals.attest", **place, verdict=verdict)
        assert house.reached(run, *ENDS) == "cancelled"
        call = house.call(run, "send_message")
        assert call["status"] == {"happened": "done", "not_happened": "not_executed"}[verdict]
        assert bool(call["after_cancel"]) and len(house.effects_of(run)) == (verdict == "happened")
