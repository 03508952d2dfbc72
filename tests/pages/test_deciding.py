"""Forms that decide: one post, one act, and nothing of what was typed is lost."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from runs.models import Approval, Event, Policy, Run
from tests.demo.conftest import Service
from tests.pages.story import Story, browser, decide, person


def test_the_loser_of_a_race_is_told_who_won_and_keeps_their_text(asked: Story) -> None:
    assert decide(asked, "approve", "reviewer").status_code == 302
    late = decide(asked, "reject", "second", why="Wrong customer, I think.")
    assert late.status_code == 409
    assert "reviewer has already approved this" in late.content.decode()


def test_a_refusal_keeps_the_reason_that_was_typed(asked: Story) -> None:
    changed = decide(asked, "reject", digest="0" * 64, why="The lamp is not <broken>.")
    assert changed.status_code == 412
    assert "The lamp is not &lt;broken&gt;." in changed.content.decode()
    assert "reload the page and look again" in changed.content.decode()


def test_an_expired_approval_is_gone_and_runs_nothing(seeded: None, service: Service) -> None:
    rule = {"id": "quick", "effect": "ask", "tools": ["refund_order"], "expires": 1}
    Policy.objects.filter(current=True).update(current=False)
    Policy.objects.create(number=2, content={"defaults": {"get_order": "allow"}, "rules": [rule]}, current=True, at=1)
    story = Story().go()
    time.sleep(1.1)
    assert "This approval has expired." in browser("reviewer").get(f"/approvals/{story.approval.pk}").content.decode()
    answer = decide(story, "approve")
    assert answer.status_code == 410 and "expired" in answer.content.decode()
    assert service.effects("kind=refund") == 0


def test_the_starter_may_not_decide_by_a_post_either(asked: Story) -> None:
    assert decide(asked, "approve", "operator").status_code == 403
    assert Approval.objects.get(pk=asked.approval.pk).status == "pending"


def test_a_rejection_needs_a_reason_and_tells_the_agent(asked: Story) -> None:
    assert decide(asked, "reject").status_code == 422
    assert decide(asked, "reject", why="Too much. Pay 12.50.").status_code == 302
    asked.go()
    assert asked.run.status == "waiting_approval"  # it proposed the other amount
    assert "12.50" in asked.call.arguments


def test_a_rejection_can_stop_the_run(asked: Story) -> None:
    assert decide(asked, "reject", why="Fraud.", then="stop").status_code == 302
    assert asked.go().run.status == "cancelled"


def test_an_edit_by_fields_keeps_decimals_exact_and_is_shown_beside_the_proposal(
    asked: Story, service: Service
) -> None:
    fields = {"arg_order_id": "O-1042", "arg_amount": "50.00", "arg_currency": "EUR", "arg_reason": "Half is right."}
    assert decide(asked, "edit", mode="fields", **fields).status_code == 302
    assert asked.go().run.status == "succeeded"
    assert json.loads(asked.call.arguments)["amount"] == "50.00"
    page = browser("auditor").get(asked.page).content.decode()
    assert "As the model proposed it" in page and "changed the arguments" in page and "80.00" in page


def test_an_edit_as_json_is_checked_and_kept(asked: Story) -> None:
    broken = decide(asked, "edit", mode="json", json='{"amount": 5')
    assert broken.status_code == 422 and "&quot;amount&quot;: 5" in broken.content.decode()
    denied = json.dumps(json.loads(asked.call.arguments) | {"amount": "900.00"})
    answer = decide(asked, "edit", mode="json", json=denied)
    assert answer.status_code == 422 and "policy denies" in answer.content.decode()
    fine = json.dumps(json.loads(asked.call.arguments) | {"amount": "60.00"})
    assert decide(asked, "edit", mode="json", json=fine).status_code == 302


def test_line_ends_of_a_browser_do_not_become_part_of_an_argument(asked: Story) -> None:
    fields = {"arg_order_id": "O-1042", "arg_amount": "80.00", "arg_currency": "EUR", "arg_reason": "One.\r\nTwo."}
    assert decide(asked, "edit", mode="fields", **fields).status_code == 302
    assert json.loads(asked.call.arguments)["reason"] == "One.\nTwo."


def test_a_question_is_answered_by_its_schema(questioned: Story) -> None:
    page = browser("operator").get(f"/questions/{questioned.question.pk}").content.decode()
    assert "Which colour does the customer want?" in page and '<option value="black">' in page
    place = f"/questions/{questioned.question.pk}/answer"
    assert browser("operator").post(place, {"answer_colour": "green"}).status_code == 422
    assert browser("operator").post(place, {"answer_colour": "white"}).status_code == 302
    late = browser("reviewer").post(place, {"answer_colour": "black"})
    assert late.status_code == 409 and "operator" in late.content.decode()
    assert questioned.go().run.status == "succeeded"
    assert "The customer wants white." in browser("auditor").get(questioned.page).content.decode()


@pytest.mark.parametrize(
    ("verdict", "ends"), [("happened", "done"), ("not_happened", "not_executed"), ("again", "ready")]
)
def test_an_unknown_effect_is_attested(unknown: Story, verdict: str, ends: str) -> None:
    lacking = browser("reviewer").post(unknown.place, {"verdict": verdict, "why": ""})
    assert lacking.status_code == 422 and "Say how you know" in lacking.content.decode()
    told = {"verdict": verdict, "reference": "M-1", "why": "I looked into the mail log."}
    assert browser("reviewer").post(unknown.place, told).status_code == 302
    assert unknown.call.status == ends
    again = browser("reviewer").post(unknown.place, told)
    assert again.status_code == 409 and "not unknown any more" in again.content.decode()


def test_a_run_is_started_once_however_often_the_form_is_sent(seeded: None) -> None:
    page = browser("operator").get("/runs/new/refund").content.decode()
    key = page.split('name="request_key" value="')[1].split('"')[0]
    form = {
        "request_key": key,
        "goal": "Refund it.",
        "input_order_id": "O-1042",
        "fact_customer": "C-7",
        "limit_turns": "9",
    }
    first, second = (browser("operator").post("/runs/new/refund", form) for _ in range(2))
    assert first.status_code == 302 and first.headers["Location"] == second.headers["Location"]
    run = Run.objects.get()
    assert run.facts == {"customer": {"value": "C-7", "source": "starter"}} and run.picture.limits.turns == 9
    assert run.inputs["order_id"] == {"value": "O-1042", "trust": "trusted"}


def test_a_start_that_is_refused_keeps_everything_typed(seeded: None) -> None:
    form = {
        "request_key": "k",
        "goal": "",
        "input_order_id": "O-77",
        "input_reason": "My <words>",
        "fact_customer": "C-9",
    }
    answer = browser("operator").post("/runs/new/refund", form)
    page = answer.content.decode()
    assert answer.status_code == 422 and not Run.objects.exists()
    for kept in ("O-77", "My &lt;words&gt;", "C-9"):
        assert kept in page


def test_cancel_says_beforehand_what_it_does_not_undo(asked: Story) -> None:
    page = browser("operator").get(f"{asked.page}/cancel").content.decode()
    assert "Cancelling is not undoing." in page
    assert "Not executed:" in page and "Completed:" in page and "Unknown:" in page
    assert browser("operator").post(f"{asked.page}/cancel", {"why": "Changed my mind."}).status_code == 302
    assert asked.go().run.status == "cancelled"
    assert "Withdrawn" in browser("auditor").get(asked.page).content.decode()


@pytest.mark.parametrize(("act", "data", "kind"), [
    ("note", {"text": "Look at L-88."}, "NoteAdded"), ("pause", {}, "PauseAsked"),
    ("extend", {"turns": "30", "minutes": "60"}, "LimitsChanged"),
])  # fmt: skip
def test_what_people_do_to_a_run_stands_on_its_timeline(asked: Story, act: str, data: Any, kind: str) -> None:
    assert browser("operator").post(f"{asked.page}/{act}", data).status_code == 302
    event = Event.objects.get(run=asked.run, kind=kind)
    assert event.person_id == person("operator").pk
    assert f'id="card-event-{event.seq}"' in browser("auditor").get(asked.page).content.decode()


def test_a_paused_run_can_be_resumed_and_an_auditor_sees_no_buttons(asked: Story) -> None:
    browser("operator").post(f"{asked.page}/pause")
    page = browser("operator").get(asked.page).content.decode()
    assert "Paused" in page and "do-resume" in page
    assert 'form="do-resume"' not in browser("auditor").get(asked.page).content.decode()
    assert browser("operator").post(f"{asked.page}/resume").status_code == 302
