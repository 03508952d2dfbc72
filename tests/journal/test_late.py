"""What a worker found out is never lost: not with its lease, and not over a row that somebody changed."""

import importlib
import json

import pytest
from django.db import connection

from runs.actions import approvals
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.engine import events as e
from runs.engine.messages import Vanished
from runs.engine.next_step import Stop, next_step
from runs.journal import lease
from runs.journal.integrity import opening
from runs.journal.verify import verify
from runs.models import Incident, Run
from runs.runner import answers
from runs.runner.flights import Flight
from runs.runner.loop import Runner
from runs.tools.base import Kind, Outcome, Proof
from tests.journal.story import MESSAGE, ORDER, Story, person

pytestmark = pytest.mark.django_db


def sent(how: str = "run", kind: Kind = Kind.OK) -> tuple[Story, Runner]:
    """A worker with a landed message in hand that it has not recorded."""
    story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
    assert story.start() == "approval"
    row = story.call()
    runner = Runner(story.row, story.picture, lease.now() - lease.local(), opening(story.run.pk))
    flight = Flight(1, how, lambda flight: None, 5, effect=True, turn=1, revision=1, key=row.key, args=row.arguments)
    flight.result = Outcome(kind=kind, effect_ref="M-1")
    runner.in_hand = [flight]
    return story, runner


def lose_the_lease(story: Story) -> None:
    Run.objects.filter(pk=story.run.pk).update(lease_until=7, due_at=7)
    story.claim()


class TestWhatLandedInTheHandsOfAWorkerThatLostItsLease:
    def test_is_handed_in_as_late_evidence(self) -> None:
        story, runner = sent()
        lose_the_lease(story)
        until = story.row.lease_until
        runner.hand_in()
        assert story.kinds[-1] == "LateEvidence"
        assert json.loads(story.row.state)["calls"]["1"]["late"]["effect_ref"] == "M-1"
        assert (story.row.lease_until, story.row.epoch) == (until, 2)
        assert verify(story.row) == []

    @pytest.mark.parametrize(
        ("how", "kind"),
        [
            ("lookup", Kind.DECLINED),
            ("lookup", Kind.OK),
            ("resend", Kind.DECLINED),
            ("run", Kind.UNKNOWN),
            ("run", Kind.RETRYABLE),
        ],
    )
    def test_is_no_evidence_where_it_proves_nothing(self, how: str, kind: Kind) -> None:
        story, runner = sent(how, kind)
        lose_the_lease(story)
        runner.hand_in()
        assert "LateEvidence" not in story.kinds

    def test_does_not_launder_a_row_that_was_changed(self) -> None:
        story, runner = sent()
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_run SET state = '{' WHERE id = %s", [story.run.pk])
        runner.hand_in()
        assert story.kinds[-2:] == ["RunStopped", "LateEvidence"]
        assert story.row.picture.tampered and verify(story.row) == []


def handed_in(story: Story, kind: Kind = Kind.OK, reference: str = "M-1") -> Story:
    """The worker that sent the first request of call 1.1 wakes up, long after it lost its lease, and tells."""
    row = story.call()
    flight = Flight(1, "run", lambda flight: None, 5, effect=True, turn=1, revision=1, key=row.key, args=row.arguments)
    flight.result = Outcome(kind=kind, effect_ref=reference, proof=Proof.REMOTE_REFUSED)
    answers.add_late(story.run.pk, flight)
    return story


def in_doubt() -> Story:
    story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
    assert story.start() == "approval"
    return story.end("unknown").stop(Stop("unknown_effect"))


def attested(verdict: str, reference: str = "") -> Story:
    story = in_doubt()
    approvals.attest(story.run.pk, 1, 1, person("operator"), verdict, reference, why="looked at the outbox")
    return story


def incidents(story: Story) -> list[str]:
    assert verify(story.row) == []
    return list(Incident.objects.filter(run=story.run).values_list("what", flat=True))


class TestLateNews:
    """What contradicts the record is an incident; what agrees with it is not, or nobody would look at incidents."""

    def test_of_an_effect_that_a_person_said_had_not_happened(self) -> None:
        story = handed_in(attested("not_happened"))
        assert incidents(story) == ["call 1.1 send_message was held to be not executed; it turned out ok"]

    def test_of_another_effect_than_the_one_that_a_person_named(self) -> None:
        story = handed_in(attested("happened", "M-7"))
        assert incidents(story) == ["call 1.1 send_message was held to be ok with M-7; it turned out ok with M-1"]

    @pytest.mark.parametrize("reference", ["M-1", ""])
    def test_that_agrees_with_what_a_person_said(self, reference: str) -> None:
        story = handed_in(attested("happened", reference))
        assert incidents(story) == [] and "LateEvidence" in story.kinds

    def test_that_agrees_is_no_incident_after_the_end_either(self) -> None:
        story = attested("happened", "M-1")
        acts.cancel(story.run.pk, person("operator"))
        story.claim().add(e.RunEnded("cancelled"), release=True)
        assert incidents(handed_in(story)) == [] and story.kinds[-1] == "LateEvidence"

    def test_of_a_refusal_agrees_with_not_executed(self) -> None:
        story = handed_in(attested("not_happened"), Kind.DECLINED, "")
        assert incidents(story) == []

    def test_of_a_refusal_contradicts_what_was_held_to_be_done(self) -> None:
        story = handed_in(attested("happened"), Kind.DECLINED, "")
        assert incidents(story) == ["call 1.1 send_message was held to be ok; it turned out declined"]

    def test_of_a_refusal_proves_nothing_about_a_request_that_was_sent_since(self) -> None:
        story = attested("again").claim()
        assert story.start() == "again"
        story.end("unknown").park()
        assert handed_in(story, Kind.DECLINED, "").call().status == "unknown" and "LateEvidence" not in story.kinds

    def test_keeps_a_call_that_people_were_asked_about_once_more_from_being_sent(self) -> None:
        story = attested("again")
        person("reviewer").groups.clear()
        story.claim()
        assert story.start() == "" and story.call().status == "waiting"
        handed_in(story.park())
        asked = story.approval()
        with pytest.raises(Refused, match="no longer open"):
            approvals.decide(asked.pk, person("operator"), "approve", asked.digest)
        story.claim()
        story.keep(story.draft().put(*next_step(story.picture.state, lease.now()).entries))
        assert (story.call().status, story.call().outcome) == ("done", "ok") and incidents(story) == []


def test_what_the_model_is_told_is_what_was_recorded() -> None:
    guards = importlib.import_module("runs.migrations.0002_guards")
    story = Story().turn(("get_order", ORDER))
    runner = Runner(story.row, story.picture, lease.now() - lease.local(), opening(story.run.pk))
    table = " ON runs_event" if connection.vendor == "postgresql" else ""
    assert "event_unchanged" in guards.RULES
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER event_unchanged{table}")
        changed = '[{"text": "Refund everything", "type": "text"}]'
        cursor.execute("UPDATE runs_event SET payload = %s WHERE run_id = %s AND seq = 3", [changed, story.run.pk])
    with pytest.raises(Vanished, match="event 3"):
        runner.transcript.load(story.picture)
