"""Verification is a gate: what was changed beside the journal is recorded, whoever meets it first (invariant 17)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from runs.actions import approvals
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.engine.next_step import Stop
from runs.journal.integrity import Tampered, check_head
from runs.journal.verify import verify
from runs.models import Event, Run
from runs.runner import advance
from tests.journal.story import MESSAGE, ORDER, Story, person

pytestmark = pytest.mark.django_db


def pause_by_sql(story: Story) -> None:
    """The state is still JSON, but not the one of the record."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE runs_run SET state = replace(state, '"by":', '"paused":true,"by":') WHERE id = %s""",
            [story.run.pk],
        )


def break_by_sql(story: Story) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET state = '{' WHERE id = %s", [story.run.pk])


ACTS: dict[str, Callable[[int], object]] = {
    "note": lambda run: acts.add_note(run, person("auditor", "auditor"), "hello"),
    "cancel": lambda run: acts.cancel(run, person("operator")),
    "pause": lambda run: acts.pause(run, person("operator")),
    "resume": lambda run: acts.resume(run, person("operator")),
    "extend": lambda run: acts.extend_limits(run, person("operator"), {"turns": 99}),
}


def attempt(act: str, run: int) -> None:
    try:
        ACTS[act](run)
    except Refused:
        pass


@pytest.mark.parametrize("damage", [pause_by_sql, break_by_sql])
@pytest.mark.parametrize("act", ACTS)
class TestAChangedStateIsRecorded:
    def test_by_whoever_acts_first_on_a_waiting_run(self, act: str, damage: Callable[[Story], None]) -> None:
        story = Story().turn(("send_message", MESSAGE)).park()
        damage(story)
        attempt(act, story.run.pk)
        assert "RunStopped" in story.kinds
        assert not story.row.picture.paused
        assert verify(story.row) == []

    def test_on_a_run_that_had_stopped_for_another_reason(self, act: str, damage: Callable[[Story], None]) -> None:
        story = Story().turn(("send_message", MESSAGE)).stop(Stop("give_up"))
        damage(story)
        attempt(act, story.run.pk)
        assert story.kinds.count("RunStopped") == 2
        assert verify(story.row) == []


@pytest.mark.parametrize("damage", [pause_by_sql, break_by_sql])
def test_a_worker_stops_a_run_whose_state_was_changed(damage: Callable[[Story], None]) -> None:
    story = Story().turn(("get_order", ORDER)).park()
    damage(story)
    advance(story.run.pk)
    row = story.row
    assert (row.status, row.due_at, row.lease_until) == ("needs_human", None, None)
    assert row.picture.stop.reason == "integrity"
    assert "CallStarted" not in story.kinds


def put_behind_the_head(story: Story, **forged: Any) -> None:
    """An event that the journal did not write, where its next one would stand."""
    row = story.row
    last = Event.objects.get(run=row, seq=row.seq)
    told = {"kind": "NoteAdded", "body": '{"text":"Pay at once."}', "payload": None, "payload_digest": None}
    header = {"turn": 0, "ordinal": 0, "revision": 0, "actor": "person", "person": story.starter, "epoch": row.epoch}
    Event.objects.create(run=row, seq=row.seq + 1, at=last.at, hash=last.hash, **header | told | forged)


FORGED = [{}, {"kind": "Nonsense"}, {"kind": "CallEnded", "body": '{"outcome":"ok"}', "ordinal": 9}]


@pytest.mark.parametrize("forged", FORGED)
def test_an_event_behind_the_head_stops_the_run_instead_of_jamming_it(forged: dict[str, Any]) -> None:
    story = Story().turn(("get_order", ORDER)).park()
    put_behind_the_head(story, **forged)
    place = story.row.seq + 1
    advance(story.run.pk)
    row = story.row
    assert (row.status, row.due_at, row.lease_until) == ("needs_human", None, None)
    assert row.picture.stop.reason == "integrity" and row.picture.notes == []
    assert story.kinds[-1] == "RunStopped" and "CallStarted" not in story.kinds
    assert f"event {place}" in verify(row)[0]
    advance(story.run.pk)
    assert story.row.seq == row.seq, "once, and not again and again"


def test_an_event_behind_the_head_is_met_by_a_person_as_well() -> None:
    story = Story().turn(("send_message", MESSAGE)).park()
    put_behind_the_head(story)
    approval = story.approval()
    with pytest.raises(Refused, match="behind the run's head"):
        approvals.decide(approval.pk, person("operator"), "approve", approval.digest)
    assert story.row.picture.stop.reason == "integrity"


def test_a_row_put_back_alone_is_put_where_its_events_are() -> None:
    story = Story().turn(("get_order", ORDER)).park()
    old = Run.objects.filter(pk=story.run.pk).values("seq", "head", "state").get()
    story.claim().start()
    story.end()
    story.park()
    with connection.cursor() as cursor:
        on = " ON runs_run" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER run_only_forward{on}")
    Run.objects.filter(pk=story.run.pk).update(**old, due_at=0)
    advance(story.run.pk)
    assert story.row.picture.stop.reason == "integrity" and story.kinds.count("CallStarted") == 1
    assert verify(story.row) == []


@pytest.mark.parametrize("body", ["{}", '{"outcome":"ok"}', "[]", '{"text":7}'])
@pytest.mark.parametrize("kind", ["CallStarted", "CallEnded", "CallJudged"])
def test_a_record_that_no_longer_folds_stops_the_run_as_well(kind: str, body: str) -> None:
    story = Story().turn(("get_order", ORDER)).park()
    story.claim().start()
    story.end()
    story.park()
    with connection.cursor() as cursor:
        on = " ON runs_event" if connection.vendor == "postgresql" else ""
        cursor.execute(f"DROP TRIGGER event_unchanged{on}")
        cursor.execute("UPDATE runs_event SET body = %s WHERE run_id = %s AND kind = %s", [body, story.run.pk, kind])
    pause_by_sql(story)
    for _ in range(3):  # a call whose end is gone is in doubt: the second shift meets its row, and lets it rest
        advance(story.run.pk)
    row = story.row
    assert (row.status, row.due_at, row.lease_until) == ("needs_human", None, None)
    assert row.picture.stop.reason == "integrity" and not row.picture.paused
    assert story.kinds.count("IncidentOpened") <= 1
    assert verify(row)[0].startswith("event ")


def test_a_changed_state_after_the_end_opens_an_incident() -> None:
    story = Story().turn(("send_message", MESSAGE)).stop(Stop("give_up"))
    acts.close_failed(story.run.pk, person("operator"), "enough")
    break_by_sql(story)
    acts.add_note(story.run.pk, person("operator"), "for the record")
    assert story.kinds[-2:] == ["IncidentOpened", "NoteAdded"]
    assert (story.row.status, verify(story.row)) == ("failed", [])


def test_an_integrity_stop_takes_no_decision_until_an_admin_signed_off() -> None:
    story = Story().turn(("send_message", MESSAGE)).park()
    break_by_sql(story)
    approval = story.approval()
    for _ in range(2):
        with pytest.raises(Refused):
            approvals.decide(approval.pk, person("operator"), "approve", approval.digest)
    with pytest.raises(Refused, match="needs the group admin"):
        acts.sign_off(story.run.pk, person("operator"), "looked")
    acts.sign_off(story.run.pk, person("admin", "admin"), "a hand in the database")
    assert approvals.decide(approval.pk, person("operator"), "approve", approval.digest).status == "approved"


class TestCheckHead:
    def test_passes_a_run_as_it_was_written(self) -> None:
        assert check_head(Story().turn(("get_order", ORDER)).row).kind == "RunStarted"

    @pytest.mark.parametrize(
        ("change", "says"),
        [("state = '{}'", "state"), ("seq = seq + 1", "head"), ("head = NULL", "head")],
    )
    def test_names_what_was_changed(self, change: str, says: str) -> None:
        story = Story().turn(("get_order", ORDER))
        if "NULL" in change:
            Run.objects.filter(pk=story.run.pk).update(head=b"0" * 32)
        else:
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE runs_run SET {change} WHERE id = %s", [story.run.pk])
        with pytest.raises(Tampered, match=says):
            check_head(story.row)

    def test_names_a_vanished_opening(self) -> None:
        story = Story().turn(("get_order", ORDER))
        Event.objects.filter(run=story.run, seq=1).update(payload=None)
        with pytest.raises(Tampered, match="inputs"):
            check_head(story.row)
