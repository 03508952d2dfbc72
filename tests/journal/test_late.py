"""What a worker found out is never lost: not with its lease, and not over a row that somebody changed."""

import importlib
import json

import pytest
from django.db import connection

from runs.engine.messages import Vanished
from runs.journal import lease
from runs.journal.integrity import opening
from runs.journal.verify import verify
from runs.models import Run
from runs.runner.flights import Flight
from runs.runner.loop import Runner
from runs.tools.base import Kind, Outcome
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
