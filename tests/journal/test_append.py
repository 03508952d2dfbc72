"""One append, one transaction: all rows or none, and never on a stale picture (invariants 1 and 3)."""

import json
from dataclasses import replace

import pytest
from django.db import IntegrityError, connection, transaction

from runs.actions import runs as acts
from runs.actions.approvals import edit
from runs.engine import events as e
from runs.engine.evolve import fold
from runs.engine.state import loads
from runs.journal import chain, gate, lease, rows
from runs.journal.append import Draft, LeaseLost, Picture, Stale, append
from runs.journal.rows import Row, RowMoved
from runs.journal.verify import verify
from runs.models import Approval, Call, CallObject, Decision, Event, Policy, Question, Run
from tests.journal.story import MESSAGE, ORDER, REFUND, Story, person, publish

pytestmark = pytest.mark.django_db


def everything(run: int) -> list[object]:
    tables = (Run.objects.filter(pk=run), *(m.objects.filter(run=run) for m in (Event, Call, Approval, Question)))
    return [list(table.order_by("pk").values()) for table in tables]


class TestAnAppend:
    def test_writes_run_events_calls_and_approvals_together(self) -> None:
        story = Story().turn(("get_order", ORDER), ("send_message", MESSAGE))
        row = story.row
        assert row.seq == len(story.kinds) == 7
        assert list(Event.objects.filter(run=row).order_by("seq").values_list("seq", flat=True)) == list(range(1, 8))
        assert [(c.ordinal, c.tool, c.status) for c in Call.objects.filter(run=row).order_by("ordinal")] == [
            (1, "get_order", "ready"),
            (2, "send_message", "waiting"),
        ]
        assert story.approval(2).status == "pending"
        assert story.approval(2).digest == story.picture.state.calls[2].action
        assert loads(row.state) == story.picture.state
        assert verify(row) == []

    def test_indexes_calls_by_the_objects_that_they_name_and_by_those_of_an_edit(self) -> None:
        story = Story().turn(("get_order", ORDER), ("send_message", MESSAGE))
        rows_of = CallObject.objects.filter(run=story.run).order_by("ordinal", "key")
        assert list(rows_of.values_list("key", "turn", "ordinal")) == [("order:O-1042", 1, 1), ("order:O-1042", 1, 2)]
        other = json.dumps(json.loads(story.call(2).arguments) | {"order_id": "O-77"})
        edit(story.approval(2).pk, person("reviewer"), story.approval(2).digest, other)
        assert story.call(2).objects_touched == ["order:O-77"]
        assert ("order:O-77", 1, 2) in rows_of.values_list("key", "turn", "ordinal")

    def test_is_as_long_a_statement_on_postgresql_for_many_events_as_for_one(self) -> None:
        one: Row = {"run_id": 1, "seq": 1, "hash": b"\x01", "body": "{}"}
        texts = {rows.insert("runs_event", [one] * count, "w0")[0] for count in (1, 5, 40)}
        assert len(texts) == 1
        assert json.loads(rows.insert("runs_event", [one], "w0")[1][0]) == [one | {"hash": "\\x01"}]

    def test_leaves_the_fold_of_its_events_as_the_state(self) -> None:
        story = Story().turn(("get_order", ORDER))
        story.start()
        story.end()
        events = Event.objects.filter(run=story.run).order_by("seq")
        assert fold(chain.entry_of(event) for event in events) == loads(story.row.state)

    def test_writes_the_outcome_of_a_call(self) -> None:
        story = Story().turn(("get_order", ORDER))
        assert story.start() == "allow"
        story.end(evidence=["order:O-1042:v3"], source="orders", version="3", ms=12)
        row = story.call()
        assert (row.status, row.outcome, row.evidence, row.source, row.version) == (
            "done",
            "ok",
            ["order:O-1042:v3"],
            "orders",
            "3",
        )
        assert row.ended_seq == story.row.seq and row.key and row.attempt == 1

    def test_may_close_a_call_and_empty_the_turn_at_once(self) -> None:
        story = Story().turn(("get_order", ORDER))
        story.start()
        draft = story.draft().add(e.CallEnded("ok"), call=1).add(e.ModelAsked(1, 5, 0), turn=2, payload="[]")
        story.keep(draft)
        assert story.picture.state.calls == {}
        assert Call.objects.get(run=story.run, turn=1, ordinal=1).status == "done"

    def test_that_fails_in_its_last_row_writes_nothing(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        before = everything(story.run.pk)
        Approval.objects.filter(run=story.run).update(status="approved")
        draft = story.draft().add(e.Decided(1, "d", "approve"), call=1, person=story.starter.pk)
        with pytest.raises(RowMoved), transaction.atomic():
            append(draft)
        Approval.objects.filter(run=story.run).update(status="pending")
        assert everything(story.run.pk) == before and not Decision.objects.exists()

    def test_without_entries_only_parks(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        seq, head = story.row.seq, bytes(story.row.head)
        story.park()
        row = story.row
        assert (row.seq, bytes(row.head), row.lease_until, row.status) == (seq, head, None, "waiting_approval")


def refuse(story: Story, picture: Picture, error: type[Exception], policy: int | None = None) -> None:
    before = everything(story.run.pk)
    draft = Draft(picture, lease.now()).add(e.NoteAdded("stale"), person=story.starter.pk)
    draft.policy = policy
    with pytest.raises(error), transaction.atomic():
        append(draft)
    assert everything(story.run.pk) == before


class TestAStalePicture:
    def test_of_the_sequence_writes_nothing(self) -> None:
        story = Story().turn(("get_order", ORDER))
        old = story.picture
        acts.add_note(story.run.pk, person("operator"), "hm")
        refuse(story, old, Stale)

    def test_of_the_sequence_does_not_even_park_over_what_a_person_did(self) -> None:
        """It is told so. The database would refuse it too, but then the worker would end instead of looking again."""
        story = Story().turn(("get_order", ORDER))
        old = story.picture
        acts.pause(story.run.pk, person("operator"))
        with pytest.raises((Stale, IntegrityError, RowMoved)) as refused, transaction.atomic():
            append(Draft(old, lease.now()), release=True)
        assert refused.type is Stale and story.row.picture.paused

    def test_of_the_epoch_is_a_lost_lease(self) -> None:
        story = Story()
        refuse(story, replace(story.picture, epoch=story.picture.epoch - 1), LeaseLost)

    def test_of_the_epoch_alone_is_refused_although_nobody_appended(self) -> None:
        """Frozen past its lease, woken after the take-over and before the new holder's first append (spine.md 7.4)."""
        story = Story().turn(("get_order", ORDER))
        frozen = story.picture
        Run.objects.filter(pk=story.run.pk).update(lease_until=1, due_at=1)
        story.claim()
        assert (story.picture.seq, story.picture.epoch) == (frozen.seq, frozen.epoch + 1)
        refuse(story, frozen, LeaseLost)

    def test_of_a_lease_that_was_let_go_is_refused(self) -> None:
        story = Story()
        held = story.picture
        story.park()
        refuse(story, held, LeaseLost)

    def test_of_the_policy_writes_nothing(self) -> None:
        story = Story()
        publish(2)
        refuse(story, story.picture, Stale, policy=1)
        draft = story.draft().add(e.NoteAdded("x"))
        draft.policy = 2
        append(draft)

    def test_of_the_policy_matters_only_where_something_was_judged(self) -> None:
        story = Story()
        publish(2)
        story.add(e.NoteAdded("x"))

    def test_that_judged_with_an_old_policy_is_refused(self) -> None:
        story = Story().turn(("get_order", ORDER))
        draft = story.draft()
        assert gate.admit(draft, 1, gate.stored_arguments(story.run.pk, 1, 1)) == "allow"
        number = Policy.objects.get(current=True).number
        Policy.objects.filter(current=True).update(current=False)
        Policy.objects.create(number=number + 1, content={"off": ["*"]}, current=True, at=1)
        with pytest.raises(Stale):
            append(draft.add(e.PauseAsked()))
        gate.current_policy(fresh=True)


class TestAPersonBesideAWorker:
    def test_leaves_the_lease_with_its_holder(self) -> None:
        story = Story().turn(("get_order", ORDER))
        lease_until = story.row.lease_until
        acts.pause(story.run.pk, person("operator"))
        row = story.row
        assert (row.lease_until, row.due_at, row.status) == (lease_until, lease_until, "paused")

    def test_makes_a_run_with_a_lapsed_lease_due_at_once(self) -> None:
        story = Story().turn(("send_message", MESSAGE))
        Run.objects.filter(pk=story.run.pk).update(lease_until=5, due_at=5)
        acts.add_note(story.run.pk, person("operator"), "hm")
        assert story.row.due_at == 0

    def test_clears_the_count_of_crashes(self) -> None:
        story = Story().turn(("send_message", MESSAGE)).park()
        Run.objects.filter(pk=story.run.pk).update(crashes=2)
        acts.add_note(story.run.pk, person("operator"), "hm")
        assert story.row.crashes == 0


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("run", "status", "lost"),
        ("run", "status", "succeeded"),
        ("call", "status", "lost"),
        ("call", "effect", "maybe"),
        ("call", "outcome", "fine"),
        ("call", "status", "executing"),
        ("approval", "status", "maybe"),
    ],
)
def test_the_database_refuses_what_the_tables_do_not_know(table: str, column: str, value: str) -> None:
    """An ended run holds a lease, a call executes without a key: constraints say no, whoever writes."""
    story = Story().turn(("send_message", MESSAGE), ("refund_order", REFUND))
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE runs_{table} SET {column} = %s", [value])
    assert story.row.status == "running"
