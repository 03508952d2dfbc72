"""The main stories, through real processes; what happened is read from the order service's own ledger."""

from __future__ import annotations

import json

import pytest

from tests.stack import until
from tests.stories.people import ENDS, House, an_order


def test_a_refund_whose_worker_dies_between_effect_and_outcome_is_paid_once(house: House) -> None:
    run = house.start("refund", amount="80.00")
    house.reached(run, "waiting_approval")
    with house.frozen_process("worker"):
        (worker,) = house.armed("after_effect")
        house.approve(run)
        worker.fired()
        assert worker.hits == 1 and len(house.effects_of(run)) == 1, "killed after the effect"
        assert house.call(run, "refund_order")["status"] == "executing", "nobody has recorded what came of it"
    assert house.reached(run, *ENDS) == "succeeded"
    (effect,) = house.effects_of(run)
    call = house.call(run, "refund_order")
    assert (call["status"], call["outcome"], call["effect_ref"]) == ("done", "ok", effect["object"])
    assert call["key"] == effect["key"], "settled under the stored key"
    ended = [b for b in house.bodies(run, "CallEnded") if b["outcome"] == "unknown"]
    assert [b["status"] for b in ended] == ["worker lost"], "in doubt first, never failed"
    assert [(b["to"], b["proof"]) for b in house.bodies(run, "CallSettled")] == [("done", "resend")]
    assert [a["status"] for a in house.approvals(run)] == ["consumed"]


def test_an_allowed_an_asked_and_a_denied_call_of_one_turn(house: House) -> None:
    other = an_order()
    house.stack.faults.arm("delay", path=f"/orders/{other}", seconds=2.5)
    run = house.start("three-calls", other_id=other)
    house.approval(run)  # in the inbox while the allowed one still runs
    read, asked, denied = house.calls(run)
    assert [c["status"] for c in (read, asked, denied)] == ["executing", "waiting", "denied"]
    house.approve(run)
    until(lambda: house.events(run, "CallStarted")[-1]["ordinal"] == 2, 2, "the approved call starts")
    assert house.calls(run)[0]["status"] == "executing", "decided while the sibling was still running"
    decided, started = house.events(run, "Decided")[0], house.events(run, "CallStarted")[-1]
    assert (started["at"] - decided["at"]) / 1e6 < 0.3, "started within 0.3 s of the decision"
    assert house.reached(run, *ENDS) == "succeeded"
    (effect,) = house.effects_of(run)
    assert effect["kind"] == "refund"
    answers = [json.loads(e["payload"]) for e in house.events(run, "ModelAsked") if e["payload"]][1]
    results = [json.loads(block["content"]) for block in answers if block["type"] == "tool_result"]
    assert [r["outcome"] for r in results] == ["ok", "ok", "denied"], "back together, in the model's order"
    assert "500.00" in results[2]["reason"]


def test_cancelling_in_the_middle_keeps_apart_what_happened_and_what_did_not(house: House) -> None:
    others = [an_order(), an_order()]
    for other in others:
        house.stack.faults.arm("delay", path=f"/orders/{other}", seconds=1.5)
    before, during = (house.start("three-calls", other_id=other) for other in others)
    for run in (before, during):
        house.approval(run)
    undecided = house.approval(before)
    house.ok("runs.cancel", run_id=before, person="operator", why="not needed any more")
    late = house.decide(before, action_digest=undecided["digest"]) if house.approvals(before, "pending") else None
    assert late is None, "what people were asked is withdrawn with the cancel"
    house.stack.faults.arm("delay", path="/refunds", contains=house.order_of(during), seconds=1.0)
    house.approve(during)
    until(
        lambda: house.call(during, "refund_order") and house.calls(during)[1]["status"] == "executing", what="in flight"
    )
    house.ok("runs.cancel", run_id=during, person="operator")
    assert house.status(during) == "cancelling"
    assert house.reached(before, *ENDS) == house.reached(during, *ENDS) == "cancelled"
    assert [c["status"] for c in house.calls(before)][1:] == ["withdrawn", "denied"]
    assert [a["status"] for a in house.approvals(before)] == ["withdrawn"]
    assert house.effects_of(before) == []
    paid = house.calls(during)[1]
    assert (paid["status"], paid["outcome"], bool(paid["after_cancel"])) == ("done", "ok", True), "awaited, and told so"
    assert len(house.effects_of(during)) == 1
    answer = house.act(
        "approvals.decide",
        approval_id=undecided["id"],
        person="reviewer",
        vote="approve",
        action_digest=undecided["digest"],
    )
    assert answer.status == 409 and "withdrawn" in answer.message


def test_a_refund_whose_reply_is_lost_is_settled_by_its_key(house: House) -> None:
    run = house.start("lossy-refund", amount="80.00")
    house.stack.faults.arm("reply_lost", path="/refunds", contains=house.order_of(run))
    house.approve(run)
    assert house.reached(run, *ENDS) == "succeeded"
    (effect,) = house.effects_of(run)
    assert [b["outcome"] for b in house.bodies(run, "CallEnded")] == ["ok", "unknown"]
    probes = [(b["how"], b["phase"], b.get("verdict", "")) for b in house.bodies(run, "CallProbed")]
    assert probes == [("resend", "asked", ""), ("resend", "told", "found")], "an event before it goes out and after"
    assert house.bodies(run, "CallSettled")[0]["effect_ref"] == effect["object"]


@pytest.fixture
def messages(house: House) -> dict[str, int]:
    """Three messages that are unknown: one was sent, its worker killed; two were cut off before anything happened."""
    runs = {name: house.start("messenger", text="Your lamp is on its way.") for name in ("sent", "cut", "again")}
    for name in ("cut", "again"):
        house.stack.faults.arm("cut", path="/messages", contains=house.order_of(runs[name]))
        house.approve(runs[name])
    for name in ("cut", "again"):
        house.reached(runs[name], "needs_human")
    with house.frozen_process("worker"):
        (worker,) = house.armed("after_effect")
        house.approve(runs["sent"])
        worker.fired()
    house.reached(runs["sent"], "needs_human")
    return runs


def test_a_person_attests_what_became_of_an_unknown_message(house: House, messages: dict[str, int]) -> None:
    for run in messages.values():
        stop = house.bodies(run, "RunStopped")[-1]
        assert (stop["status"], stop["reason"]) == ("needs_human", "unknown_effect")
        assert house.call(run, "send_message")["status"] == "unknown" and not house.bodies(run, "CallProbed")
        assert house.act("runs.resume", run_id=run, person="operator").status == 409, "not before somebody has looked"
        assert house.act("runs.close_failed", run_id=run, person="operator", why="enough").status == 409

    def attest(name: str, verdict: str, **more: str) -> int:
        place = {"run_id": messages[name], "turn": 1, "ordinal": 1, "person": "reviewer"}
        return house.act("approvals.attest", **place, verdict=verdict, **more).status

    assert attest("sent", "happened") == 422, "how they know goes into the record"
    assert attest("sent", "happened", reference="M-1", why="I read it in the outbox.") == 200
    assert attest("sent", "not_happened", why="Changed my mind.") == 409
    assert attest("cut", "not_happened", why="The outbox is empty.") == 200
    assert attest("again", "again", why="The outbox is empty, and the customer waits.") == 200
    sent, cut, again = (house.call(messages[name], "send_message") for name in ("sent", "cut", "again"))
    assert (sent["status"], sent["outcome"], sent["effect_ref"]) == ("done", "ok", "M-1")
    assert (cut["status"], bool(cut["presumed"])) == ("not_executed", False)
    key = again["key"]
    assert house.reached(messages["again"], *ENDS) == "succeeded"
    assert house.reached(messages["sent"], *ENDS) == "succeeded"
    house.reached(messages["cut"], "needs_human")
    until(lambda: house.bodies(messages["cut"], "RunStopped")[-1]["reason"] == "give_up", what="the agent gives up")
    assert {name: len(house.effects_of(run)) for name, run in messages.items()} == {"sent": 1, "cut": 0, "again": 1}
    again = house.call(messages["again"], "send_message")
    assert (again["key"], again["attempt"], again["revision"]) == (key, 2, 1), "the same operation once more"
    assert [b["via"] for b in house.bodies(messages["again"], "CallStarted")] == ["approval", "again"]
    assert [a["status"] for a in house.approvals(messages["again"])] == ["consumed"], "asked once, counted once"


def test_an_amount_edited_by_the_reviewer_is_what_is_paid_and_the_model_is_told(house: House) -> None:
    run = house.start("edit-watch")
    asked = house.approval(run)
    args = json.loads(house.call(run, "refund_order")["arguments"])
    bad = house.decide(run, "edit", arguments=json.dumps(args | {"amount": "fifty"}))
    assert bad.status == 422 and "amount" in bad.message, "the field is named"
    denied = house.decide(run, "edit", arguments=json.dumps(args | {"amount": "600.00"}))
    assert denied.status == 422 and "500.00" in denied.message
    assert house.approvals(run) == [asked], "nothing was written"
    assert house.decide(run, "edit", arguments=json.dumps(args | {"amount": "50.00"})).status == 200
    stale = house.act(
        "approvals.decide", approval_id=asked["id"], person="operator", vote="approve", action_digest=asked["digest"]
    )
    assert stale.status == 409 and "a newer one took its place" in stale.message
    assert house.reached(run, *ENDS) == "succeeded"
    (effect,) = house.effects_of(run)
    assert effect["key"] == house.call(run, "refund_order")["key"]
    assert '"amount": "50.00"' in house.told(run).replace("\\", "") and '"edited_by_person": true' in house.told(
        run
    ).replace("\\", "")
    assert "Really refunded: 50.00 EUR. A person changed it." in house.told(run)
    assert [(a["status"], a["revision"]) for a in house.approvals(run)] == [("superseded", 1), ("consumed", 2)]


def test_of_twenty_people_who_decide_at_once_one_wins_and_nineteen_are_told_who(house: House) -> None:
    names = [f"operator-{n}" for n in range(20)]
    house.ok("people", names=names)
    run = house.start("refund", amount="80.00")
    approval = house.approval(run)

    def votes(person: str, vote: str) -> tuple[str, dict[str, object]]:
        place = {"approval_id": approval["id"], "action_digest": approval["digest"]}
        return "approvals.decide", place | {"person": person, "vote": vote, "why": f"{person} says so"}

    everyone = [votes(name, ("approve", "reject")[n % 2]) for n, name in enumerate(names)]
    answers = house.at_once(everyone)
    assert sorted(a.status for a in answers) == [200] + [409] * 19
    winner = names[[a.status for a in answers].index(200)]
    assert all(f"{winner} has already" in a.message for a in answers if a.status == 409)
    (decision,) = house.stack.sql("SELECT * FROM runs_decision WHERE approval_id = %s", (approval["id"],))
    assert decision["why"] == f"{winner} says so" and len(house.events(run, "Decided")) == 1
    vote = decision["vote"]
    house.reached(run, *(ENDS if vote == "approve" else ("needs_human",)))
    if vote == "reject":
        house.ok("runs.close_failed", run_id=run, person="operator", why="The refund was rejected.")
    assert house.run(run)["status"] == ("succeeded" if vote == "approve" else "failed")
    late = [n for n in names if n != winner][:5]
    answers = house.at_once([votes(name, "approve") for name in late])
    assert [a.status for a in answers] == [409] * 5 and all(f"{winner} has already" in a.message for a in answers)
    assert house.act(*votes(winner, vote)[:1], **votes(winner, vote)[1]).status == 200, "the same once more is no news"
    other = "reject" if vote == "approve" else "approve"
    assert house.act("approvals.decide", **votes(winner, other)[1]).status == 409
    assert len(house.events(run, "Decided")) == 1
    assert len(house.effects_of(run)) == (vote == "approve")


def test_a_worker_frozen_past_its_lease_writes_nothing_and_its_evidence_is_kept(house: House) -> None:
    runs = [house.start("refund", amount="80.00") for _ in range(2)]
    for run in runs:
        house.reached(run, "waiting_approval")
    held: dict[str, int] = {}
    with house.frozen_process("worker"):
        frozen = house.armed("before_send:stop", "after_effect:stop")
        for run in runs:
            house.approve(run)  # one of the two takes it, and freezes with it
            worker = until(lambda: next((w for w in frozen if w.hits and w.fault not in held), None), what="frozen")
            worker.fired()
            held[worker.fault] = run
            assert house.call(run, "refund_order")["status"] == "executing"
    before, after = held["before_send:stop"], held["after_effect:stop"]
    assert (house.reached(before, *ENDS), house.reached(after, *ENDS)) == ("succeeded", "succeeded")
    rows = {run: house.run(run) for run in runs}
    for worker in frozen:
        worker.wake_up()
    until(lambda: all("lease lost" in w.log for w in frozen), 10, "woken workers find that their lease is over")
    until(lambda: house.events(after, "LateEvidence"), 5, "evidence of a real effect is kept")
    assert house.run(before)["seq"] == rows[before]["seq"], "who sent nothing has nothing to tell"
    evidence = house.bodies(after, "LateEvidence")[0]
    (effect,) = house.effects_of(after)
    assert (evidence["outcome"], evidence["effect_ref"], evidence["key"]) == ("ok", effect["object"], effect["key"])
    assert not house.events(after, "IncidentOpened"), "what agrees with the record is no incident"
    for run in runs:
        assert len(house.effects_of(run)) == 1, "no second effect"
        kinds = [e["kind"] for e in house.events(run)]
        assert kinds.count("CallStarted") == 2 and kinds.count("RunEnded") == 1
        assert house.run(run)["epoch"] == rows[run]["epoch"] and house.status(run) == "succeeded", "no stale append"


TAMPERING = {
    "arguments": (
        "runs_call",
        "arguments = replace(arguments, '80.00', '90.00')",
        "run_id = %s AND tool = 'refund_order'",
    ),
    "state": ("runs_run", "state = replace(state, '\"calls\"', '\"calls\" ')", "id = %s"),
    "approval": ("runs_approval", "digest = replace(digest, substr(digest, 1, 4), 'beef')", "run_id = %s"),
    "consumed": ("runs_approval", "status = 'consumed'", "run_id = %s"),
    "facts": ("runs_event", "payload = replace(payload, 'C-7', 'C-8')", "run_id = %s AND seq = 1"),
    "voter": ("runs_decision", "person_id = %s", "approval_id = (SELECT id FROM runs_approval WHERE run_id = %s)"),
}
SHOWN = {
    "goal": ("runs_run", "goal = 'Pay everything.'", "id = %s"),
    "inputs": ("runs_run", "inputs = CAST(replace(CAST(inputs AS text), '80.00', '90.00') AS {json})", "id = %s"),
    "reason": ("runs_decision", "why = 'forged'", "approval_id = (SELECT id FROM runs_approval WHERE run_id = %s)"),
}


def test_a_row_changed_between_approval_and_start_stops_the_run_and_nothing_is_executed(house: House) -> None:
    runs = dict(zip(TAMPERING, house.start_all([("refund", {"amount": "80.00"})] * len(TAMPERING)), strict=True))
    for run in runs.values():
        house.reached(run, "waiting_approval")
    starter = house.run(runs["voter"])["starter_id"]
    with house.frozen_process("worker"):
        for kind, run in runs.items():
            house.approve(run)
            house.tamper(run, *TAMPERING[kind], *([starter] if kind == "voter" else []), run)
    for kind, run in runs.items():
        assert house.reached(run, *ENDS, "needs_human") == "needs_human", kind
        assert house.bodies(run, "RunStopped")[-1]["reason"] == "integrity", kind
        refused = house.act("runs.resume", run_id=run, person="operator")
        assert refused.status == 409 and "admin" in refused.message, (kind, refused)
        assert house.effects_of(run) == [] and house.call(run, "refund_order")["started_at"] is None, kind
        assert len(house.events(run, "CallStarted")) == 1, "only the read, before"
    named = house.stack.manage("verify_audit", *map(str, runs.values()), check=False)
    assert named.returncode == 1
    assert [kind for kind, run in runs.items() if f"run {run}: " in named.stderr] == [
        kind
        for kind in TAMPERING
        if kind != "state"  # which was written again as the record has it
    ]


def test_what_pages_show_changed_by_sql_moves_nothing_and_is_named_by_the_verification(house: House) -> None:
    runs = dict(zip(SHOWN, house.start_all([("refund", {"amount": "80.00"})] * len(SHOWN)), strict=True))
    json_type = "jsonb" if house.stack.env.get("DATABASE_URL", "").startswith("postgres") else "text"
    for kind, run in runs.items():
        house.approve(run)
        assert house.reached(run, *ENDS) == "succeeded"
        table, change, where = SHOWN[kind]
        house.tamper(run, table, change.format(json=json_type), where, run)
    named = house.stack.manage("verify_audit", *map(str, runs.values()), check=False)
    assert all(f"run {run}: " in named.stderr for run in runs.values()), named.stderr
