"""Effects that land after everybody stopped waiting: what is said meanwhile, and what corrects it."""

from __future__ import annotations

from tests.stack import until
from tests.stories.people import ENDS, STOPS, House

DAY = {"day": "2026-12-04"}
AGENTS = {
    "read": ("stock-question", {"sku": "LAMP-01"}, "/stock/"),
    "repeatable": ("pickup-soon", DAY | {"note": "Ring twice."}, "/delivery-notes"),
    "keyed": ("refund", {"amount": "80.00"}, "/refunds"),
    "lookup": ("pickup-soon", DAY, "/pickups"),
    "opaque": ("messenger", {"text": "Hello."}, "/messages"),
}


def late(house: House, seconds: float = 3.0) -> dict[str, int]:
    """A run for each effect class; its request hangs on its way and has its effect after `seconds`."""
    started = house.start_all([(agent, dict(given)) for agent, given, _ in AGENTS.values()])
    runs = dict(zip(AGENTS, started, strict=True))
    for name, run in runs.items():
        fault = {"seconds": seconds, "contains": house.order_of(run) if name != "read" else "LAMP-01"}
        method = {"repeatable": "PUT", "read": "GET"}.get(name, "POST")
        house.stack.faults.arm("late", path=AGENTS[name][2], method=method, **fault)
    return runs


def approve_until_over(house: House, run: int) -> str:
    """Approve whatever the run asks until it has ended or stopped."""
    while (status := house.reached(run, "waiting_approval", *ENDS, *STOPS, seconds=30)) == "waiting_approval":
        house.approve(run)
        until(lambda: not house.approvals(run, "pending"), what="decided")
        until(lambda: house.status(run) != "waiting_approval" or house.approvals(run, "pending"), what="it goes on")
    return status


def test_of_an_effect_that_lands_late_none_is_repeated_and_what_was_presumed_is_corrected(house: House) -> None:
    runs = late(house)
    ends = {name: approve_until_over(house, run) for name, run in runs.items()}
    assert ends["read"] == ends["repeatable"] == ends["keyed"] == "succeeded", ends
    assert ends["lookup"] == ends["opaque"] == "needs_human", ends

    notes = house.effects_of(runs["repeatable"], "delivery_note")
    assert notes and len(house.effects_of(runs["repeatable"], "pickup")) == 1, "set again, to the same"
    assert [b["proof"] for b in house.bodies(runs["keyed"], "CallSettled")] == ["resend"]

    lookup = runs["lookup"]
    call = house.call(lookup, "book_pickup_soon")
    probes = [(b["phase"], b.get("verdict", "")) for b in house.bodies(lookup, "CallProbed")]
    assert probes == [("asked", ""), ("told", "not_found")] * 2, "asked twice, after the deadline"
    (settled,) = house.bodies(lookup, "CallSettled")
    assert (settled["to"], settled["proof"], settled["presumed"]) == ("not_executed", "quiesced_lookup", True)
    assert "presumed" in house.told(lookup), "the model is told what kind of knowledge that is"
    assert call["watch_at"] and len(house.bodies(lookup, "CallStarted")) == 1, "never sent again by itself"

    incident = until(lambda: house.bodies(lookup, "IncidentOpened"), 15, "the watch finds it")[0]
    assert "held to be not executed; it turned out ok" in incident["what"]
    (effect,) = house.effects_of(lookup, "pickup")
    (evidence,) = house.bodies(lookup, "LateEvidence")
    assert (evidence["effect_ref"], evidence["key"], effect["key"]) == (effect["object"], call["key"], call["key"])
    corrected = house.call(lookup, "book_pickup_soon")
    assert (corrected["status"], corrected["outcome"], corrected["watch_at"]) == ("done", "ok", None)

    assert house.call(runs["opaque"], "send_message")["status"] == "unknown", "a person says, whatever lands"
    assert house.bodies(runs["opaque"], "CallProbed") == []
    until(lambda: len(house.effects_of(runs["opaque"])) == 1, what="it does land")
    for name in ("keyed", "lookup", "opaque"):
        house.one_effect_each([runs[name]])

    (row,) = house.stack.sql("SELECT id, closed_at FROM runs_incident WHERE run_id = %s", (lookup,))
    close = {"incident_id": row["id"], "why": "The carrier confirmed P-1; the customer was told."}
    assert house.act("runs.close_incident", person="auditor", **close).status == 403
    assert house.act("runs.close_incident", person="operator", **close).status == 200
    assert "already closed" in house.act("runs.close_incident", person="reviewer", **close).message


def test_a_booking_whose_reply_is_lost_is_found_by_our_mark(house: House) -> None:
    run = house.start("pickup-soon", **DAY)
    house.stack.faults.arm("reply_lost", path="/pickups", method="POST", contains=house.order_of(run))
    assert approve_until_over(house, run) == "succeeded"
    (settled,) = house.bodies(run, "CallSettled")
    assert (settled["to"], settled["proof"]) == ("done", "lookup")
    assert len(house.effects_of(run, "pickup")) == 1 and not house.bodies(run, "IncidentOpened")
    house.one_effect_each([run])


def test_a_booking_that_never_left_is_presumed_not_made_and_the_looks_end(house: House) -> None:
    run = house.start("pickup-soon", **DAY)
    house.reached(run, "waiting_approval")
    with house.frozen_process("worker"):
        (worker,) = house.armed("after_intent:kill")
        house.approve(run)
        worker.fired()
    until(lambda: house.bodies(run, "CallSettled"), 20, "looked for twice")
    assert house.bodies(run, "CallSettled")[0]["presumed"] is True and house.effects_of(run, "pickup") == []
    until(lambda: house.call(run, "book_pickup_soon")["watch_at"] is None, 15, "nothing is looked for for ever")
    assert not house.bodies(run, "LateEvidence") and house.call(run, "book_pickup_soon")["status"] == "not_executed"


def test_a_worker_frozen_after_its_effect_contradicts_the_person_who_said_that_nothing_happened(house: House) -> None:
    run = house.start("messenger", text="Hello.")
    house.reached(run, "waiting_approval")
    with house.frozen_process("worker"):
        (worker,) = house.armed("after_effect:stop")
        house.approve(run)
        worker.fired()
    assert len(house.effects_of(run)) == 1, "the message is out, and only the frozen worker knows"
    house.reached(run, "needs_human")
    call = house.call(run, "send_message")
    place = {"run_id": run, "turn": call["turn"], "ordinal": call["ordinal"], "person": "operator"}
    house.ok("approvals.attest", **place, verdict="not_happened", why="The outbox looks empty.")
    house.reached(run, *ENDS, *STOPS)
    seq = house.run(run)["seq"]

    worker.wake_up()
    incident = until(lambda: house.bodies(run, "IncidentOpened"), 15, f"it tells; its log:\n{worker.log[-2000:]}")[0]
    assert "send_message was held to be not executed; it turned out ok" in incident["what"]
    (evidence,), (effect,) = house.bodies(run, "LateEvidence"), house.effects_of(run)
    assert evidence["effect_ref"] == effect["object"]
    late = [event for event in house.events(run) if event["seq"] > seq]
    assert {"LateEvidence", "IncidentOpened"} <= {event["kind"] for event in late}
    assert "CallStarted" not in {event["kind"] for event in late}, "nothing is sent again"
    assert (house.call(run, "send_message")["status"], len(house.effects_of(run))) == ("done", 1)
