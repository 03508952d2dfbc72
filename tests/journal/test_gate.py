"""Nothing starts without a verdict that stands now: an approval holds, or it is put to people anew (DESIGN.md 7)."""

import pytest
from django.db import connection

from runs.actions import approvals
from runs.actions.acting import Refused
from runs.engine import events as e
from runs.engine.canonical import digest
from runs.journal import gate, lease
from runs.journal.verify import verify
from runs.models import Approval, Decision
from tests.journal.story import MESSAGE, ORDER, REFUND, Story, person, publish
from tests.stack import until

pytestmark = pytest.mark.django_db
DENY = {"id": "no", "effect": "deny", "tools": ["send_message"]}
ASK = {"id": "other", "effect": "ask", "tools": ["send_message"]}


def approved() -> Story:
    return Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))


class TestAnApproval:
    def test_lets_its_call_start_once_and_is_consumed(self) -> None:
        story = approved()
        assert story.start() == "approval"
        assert (story.approval().status, story.call().status) == ("consumed", "executing")
        assert verify(story.row) == []

    def test_is_not_counted_again_after_a_proof_of_no_effect(self) -> None:
        story = approved()
        story.start()
        story.end("retryable", proof="pre_send")
        assert story.start() == "again"
        assert Approval.objects.filter(run=story.run).count() == 1

    @pytest.mark.parametrize("rules", [[], [ASK], [{**ASK, "effect": "allow"}]], ids=["same", "another ask", "allow"])
    def test_holds_under_a_policy_that_is_no_stricter(self, rules: list[dict[str, object]]) -> None:
        story = approved()
        publish(2, rules=rules)
        assert story.start() == "approval"

    def test_falls_with_a_deny(self) -> None:
        story = approved()
        publish(2, rules=[DENY])
        assert story.start() == ""
        assert (story.call().status, story.approval().status) == ("denied", "superseded")

    def test_falls_with_a_kill_switch(self) -> None:
        story = approved()
        publish(2, off=["*"])
        assert story.start() == ""
        assert story.call().status == "denied"

    def test_is_asked_for_anew_when_its_voter_is_now_excluded(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        story.approve(story.starter)
        publish(2, rules=[{**ASK, "exclude_starter": True}])
        assert story.start() == ""
        statuses = list(Approval.objects.filter(run=story.run).order_by("n").values_list("status", flat=True))
        assert statuses == ["superseded", "pending"] and story.call().status == "waiting"
        with pytest.raises(Refused, match="another operator"):
            story.approve(story.starter)
        story.approve(person("reviewer"))
        assert story.start() == "approval"

    def test_is_asked_for_anew_when_the_exclusion_is_wider_whoever_voted(self) -> None:
        story = approved()
        publish(2, rules=[{**ASK, "exclude_starter": True}])
        assert story.start() == ""
        assert story.approval().exclude == [story.starter.pk]

    @pytest.mark.parametrize("loss", ["group", "account"])
    def test_is_asked_for_anew_when_its_voter_lost_the_right(self, loss: str) -> None:
        story, voter = approved(), person("reviewer")
        if loss == "group":
            voter.groups.clear()
        else:
            voter.is_active = False
            voter.save()
        assert story.start() == ""
        assert story.approval().status == "pending" and story.approval().n == 2

    def test_of_other_arguments_is_an_integrity_stop(self) -> None:
        story = approved()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_call SET arguments = %s", ['{"order_id":"O-1042","text":"Pay me."}'])
        assert story.start() == ""
        assert story.picture.state.tampered and "arguments" in story.row.events.last().body

    def test_of_arguments_whose_digest_was_made_to_fit_is_one_too(self) -> None:
        story = approved()
        forged = '{"order_id":"O-1042","text":"Pay me."}'
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_call SET arguments = %s, args_digest = %s", [forged, digest(forged)])
        assert story.start() == ""
        assert story.picture.state.tampered

    def test_of_other_bytes_does_not_stand_for_its_call(self) -> None:
        """What binds is the digest of the bytes that were shown, never the place of the call alone."""
        story = approved()
        with connection.cursor() as cursor:
            on = " ON runs_approval" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER approval_closed{on}")
        Approval.objects.filter(run=story.run).update(digest="0" * 64)
        assert story.start() == ""
        assert story.picture.state.tampered and "CallStarted" not in story.kinds

    def test_that_a_hand_gave_without_a_vote_does_not_count(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        Approval.objects.filter(run=story.run).update(status="approved")
        assert story.picture.state.calls[1].status == "waiting"
        assert not Decision.objects.exists()

    def test_of_another_definition_of_the_tool_falls(self) -> None:
        story = approved()
        draft = story.draft()
        calls = draft.state.calls
        draft.state = draft.state.with_call(
            1, calls[1].__class__(**{**vars(calls[1]), "definition": "send_message@old"})
        )
        assert gate.admit(draft, 1, gate.stored_arguments(story.run.pk, 1, 1)) == ""
        assert [x.fact.kind for x in draft.entries] == ["ApprovalClosed", "CallJudged"]
        assert draft.state.calls[1].status == "denied"


class TestACallWithoutApproval:
    def test_starts_where_the_policy_allows(self) -> None:
        assert Story().turn(("get_order", ORDER)).start() == "allow"

    def test_is_put_to_people_when_the_policy_got_stricter(self) -> None:
        story = Story().turn(("get_order", ORDER))
        publish(2, defaults={"get_order": "ask"})
        assert story.start() == ""
        assert (story.call().status, story.approval().status) == ("waiting", "pending")

    def test_of_high_risk_excludes_the_person_who_started_the_run(self) -> None:
        story = Story().turn(("refund_order", REFUND))
        assert story.approval().exclude == [story.starter.pk]

    def test_in_a_run_that_nobody_watches_is_denied_where_it_would_ask(self) -> None:
        story = Story(unattended=True).turn(("send_message", MESSAGE), ("get_order", ORDER))
        assert (story.call(1).status, story.call(2).status) == ("denied", "ready")
        assert not Approval.objects.filter(run=story.run).exists()


class TestADecision:
    def test_of_three_equal_calls_lands_on_its_own(self) -> None:
        story = Story().turn(*[("send_message", MESSAGE)] * 3)
        approve, reject = story.approval(2), story.approval(1)
        approvals.decide(approve.pk, person("reviewer"), "approve", approve.digest)
        approvals.decide(reject.pk, person("reviewer"), "reject", reject.digest, "no")
        assert [story.call(n).status for n in (1, 2, 3)] == ["refused", "ready", "waiting"]

    def test_once_more_by_the_same_person_is_nothing(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        approval = story.approval()
        for _ in range(2):
            approvals.decide(approval.pk, person("reviewer"), "approve", approval.digest)
        assert story.kinds.count("Decided") == 1

    def test_after_another_names_who_won(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        approval = story.approval()
        approvals.decide(approval.pk, person("reviewer"), "reject", approval.digest)
        with pytest.raises(Refused, match="reviewer has already rejected") as refused:
            approvals.decide(approval.pk, person("operator"), "approve", approval.digest)
        assert refused.value.status == 409

    def test_on_other_bytes_is_refused(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        with pytest.raises(Refused) as refused:
            approvals.decide(story.approval().pk, person("reviewer"), "approve", "0" * 64)
        assert refused.value.status == 412 and story.call().status == "waiting"

    def test_after_the_expiry_is_too_late_though_nobody_has_recorded_it(self) -> None:
        publish(1, rules=[{**ASK, "expires": 1}])
        story = Story().turn(("send_message", MESSAGE)).park()
        approval = story.approval()
        assert approval.expires_at is not None
        until(lambda: lease.now() > approval.expires_at, 5, "the approval expires")
        assert approval.status == "pending"
        with pytest.raises(Refused) as refused:
            approvals.decide(approval.pk, person("reviewer"), "approve", approval.digest)
        assert refused.value.status == 410 and "Decided" not in story.kinds

    def test_of_an_edit_makes_a_new_revision_under_the_editors_name(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        approval = story.approval()
        approvals.edit(
            approval.pk, person("reviewer"), approval.digest, '{"order_id": "O-1042", "text": "Hi"}', "shorter"
        )
        story.reload()
        row = story.call()
        assert (row.revision, row.status, row.values()["text"]) == (2, "ready", "Hi")
        assert story.start() == "approval"
        assert verify(story.row) == []

    def test_of_an_edit_that_the_policy_denies_writes_nothing(self) -> None:
        publish(1, rules=[{**DENY, "when": [{"arg": "text", "op": "eq", "value": "Hi"}]}])
        story = Story().turn(("send_message", MESSAGE))
        approval, kinds = story.approval(), story.kinds
        with pytest.raises(Refused) as refused:
            approvals.edit(approval.pk, person("reviewer"), approval.digest, '{"order_id": "O-1042", "text": "Hi"}')
        assert refused.value.status == 422 and story.kinds == kinds and story.approval().status == "pending"


def test_a_resend_needs_a_voter_who_may_still_decide() -> None:
    story = Story().turn(("refund_order", REFUND)).approve(person("reviewer"))
    story.start()
    story.end("unknown")
    args = gate.stored_arguments(story.run.pk, 1, 1)
    assert gate.may_resend(story.draft(), 1, args)
    person("reviewer").groups.clear()
    assert not gate.may_resend(story.draft(), 1, args)


def test_a_refusal_of_the_second_request_leaves_the_first_in_doubt() -> None:
    story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
    story.start()
    story.end("unknown")
    story.add(e.CallSettled("ready", "human"), call=1, person=story.starter.pk)
    story.start()
    story.end("declined")
    assert story.call().status == "unknown"
