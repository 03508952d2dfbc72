"""What may have been sent stays in doubt until somebody or something settles it; cancelling is not undoing."""

import pytest

from runs.actions import approvals, questions
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.engine import events as e
from runs.engine.next_step import Stop, next_step
from runs.journal import lease
from runs.journal.append import Draft, Picture, append
from runs.journal.verify import verify
from runs.models import Approval, Question
from tests.journal.story import MESSAGE, ORDER, REFUND, Story, person

pytestmark = pytest.mark.django_db


def sent_and_lost() -> Story:
    """An approved one-shot call that was started and of which nobody knows what became."""
    story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
    assert story.start() == "approval"
    return story.end("unknown").stop(Stop("unknown_effect"))


def attest(story: Story, verdict: str) -> Story:
    approvals.attest(story.run.pk, 1, 1, person("operator"), verdict, why="looked at the outbox")
    return story


def asked_again() -> Story:
    """A person said "again", but the gate asks anew, for the first voter has lost the right."""
    story = attest(sent_and_lost(), "again")
    person("reviewer").groups.clear()
    story.claim()
    assert story.start() == ""
    assert story.call().status == "waiting"
    return story.park()


class TestCancelling:
    def test_withdraws_a_call_that_was_allowed_and_never_started(self) -> None:
        story = Story().turn(("get_order", ORDER)).park()
        acts.cancel(story.run.pk, person("operator"))
        assert (story.call().status, story.row.status) == ("withdrawn", "cancelling")

    def test_withdraws_an_open_question(self) -> None:
        story = Story().turn()
        draft = story.draft().add(e.CallJudged("a", "ask_user", "d", "host", verdict="allow"), call=1, payload="{}")
        story.keep(draft.add(e.QuestionAsked("Which colour?", {}), call=1), release=True)
        assert story.row.status == "waiting_input"
        acts.cancel(story.run.pk, person("operator"))
        question = Question.objects.get(run=story.run)
        assert (question.status, story.call().status) == ("withdrawn", "withdrawn")
        with pytest.raises(Refused, match="no longer open"):
            questions.answer(question.pk, person("operator"), "black")

    def test_withdraws_what_people_were_asked(self) -> None:
        story = Story().turn(("send_message", MESSAGE), ("refund_order", REFUND)).park()
        acts.cancel(story.run.pk, person("operator"))
        assert set(Approval.objects.filter(run=story.run).values_list("status", flat=True)) == {"withdrawn"}

    def test_keeps_a_call_in_doubt_that_was_to_be_sent_again(self) -> None:
        story = attest(sent_and_lost(), "again")
        acts.cancel(story.run.pk, person("operator"))
        assert story.call().status == "unknown"

    def test_keeps_a_call_in_doubt_that_waits_for_a_second_approval(self) -> None:
        story = asked_again()
        acts.cancel(story.run.pk, person("operator"))
        assert (story.call().status, story.approval().status) == ("unknown", "withdrawn")
        assert verify(story.row) == []

    def test_keeps_a_call_in_doubt_although_its_second_request_was_proven_harmless(self) -> None:
        story = attest(sent_and_lost(), "again").claim()
        assert story.start() == "again"
        story.end("retryable", proof="pre_send", retry_at=lease.now() + 60_000_000).park()
        acts.cancel(story.run.pk, person("operator"))
        assert story.call().status == "unknown"

    def test_withdraws_a_call_whose_only_request_was_proven_harmless(self) -> None:
        story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
        story.start()
        story.end("retryable", proof="pre_send", retry_at=lease.now() + 60_000_000).park()
        acts.cancel(story.run.pk, person("operator"))
        assert story.call().status == "withdrawn"


class TestASecondApproval:
    def test_rejected_leaves_the_first_request_in_doubt(self) -> None:
        story = asked_again()
        approval = story.approval()
        approvals.decide(approval.pk, person("operator"), "reject", approval.digest)
        assert story.call().status == "unknown"

    def test_cannot_be_edited_for_the_key_stands_for_other_bytes(self) -> None:
        story = asked_again()
        approval = story.approval()
        with pytest.raises(Refused, match="may have been sent"):
            approvals.edit(approval.pk, person("operator"), approval.digest, '{"order_id": "O-1042", "text": "Hi"}')

    def test_a_stopped_run_with_it_cannot_be_closed_as_failed(self) -> None:
        story = asked_again()
        story.picture = Picture.of(story.row)
        story.stop(Stop("calls"))
        with pytest.raises(Refused, match="still unknown"):
            acts.close_failed(story.run.pk, person("operator"), "enough")


class TestLateEvidence:
    def late(self, story: Story) -> Story:
        picture = Picture.of(story.row)
        fact = e.LateEvidence("ok", picture.state.calls[1].key, effect_ref="M-1")
        append(Draft(picture, lease.now()).add(fact, call=1, actor="tool"))
        return story

    def test_is_settled_by_the_next_step(self) -> None:
        story = self.late(sent_and_lost()).claim()
        step = next_step(story.picture.state, lease.now())
        story.keep(story.draft().put(*step.entries))
        assert (story.call().status, story.call().outcome, story.call().effect_ref) == ("done", "ok", "M-1")

    @pytest.mark.parametrize("verdict", ["again", "not_happened", "happened"])
    def test_comes_before_what_a_person_attests(self, verdict: str) -> None:
        story = self.late(sent_and_lost())
        with pytest.raises(Refused, match="finding out"):
            attest(story, verdict)

    def test_keeps_a_call_from_being_sent_again(self) -> None:
        story = self.late(attest(sent_and_lost(), "again")).claim()
        step = next_step(story.picture.state, lease.now())
        story.keep(story.draft().put(*step.entries))
        assert (story.call().status, story.call().outcome) == ("done", "ok")
