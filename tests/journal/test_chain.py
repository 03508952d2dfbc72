"""Nobody alters a run unseen: triggers refuse, and where a hand removed them, verify() names the edit."""

import importlib
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from runs.actions import runs as acts
from runs.engine import events as e
from runs.engine import machines
from runs.engine.next_step import Record, next_step
from runs.journal import chain
from runs.journal.verify import verify
from runs.models import AgentVersion, Approval, Call, Decision, Event, Question, Run
from tests.journal.story import MESSAGE, ORDER, Story, person

pytestmark = pytest.mark.django_db
guards = importlib.import_module("runs.migrations.0002_guards")


def sql(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


@pytest.fixture
def story() -> Story:
    """A run with a read that is done, a message that was approved and sent, and a note."""
    told = Story().turn(("get_order", ORDER), ("send_message", MESSAGE)).approve(person("reviewer"), 2)
    told.start(1)
    told.end(ordinal=1)
    told.start(2)
    told.end(ordinal=2)
    Question.objects.create(run=told.run, turn=9, ordinal=9, text="?", status="answered", created_at=1)
    AgentVersion.objects.create(agent=told.run.agent_version.agent, number=2, definition={})
    return told.add(e.NoteAdded("hm"), person=told.starter.pk)


@pytest.fixture
def unguarded(story: Story) -> Story:
    """The same run, its triggers taken away by a hand that may do everything."""
    for name, (table, *_) in guards.RULES.items():
        sql(f"DROP TRIGGER {name}" + (f" ON {table}" if connection.vendor == "postgresql" else ""))
    return story


COLUMNS = ", ".join(
    f.column for f in Call._meta.local_concrete_fields if f.column not in ("run_id", "turn", "ordinal", "key")
)
EVENT = "UPDATE runs_event SET {} WHERE run_id = %s AND seq = 4"
EDITS = {
    "a body": (
        EVENT.format('body = \'{"calls":3,"ms":3,"stop":"tool_use","tokens":5,"bytes":10}\''),
        "event 4: its hash",
    ),
    "a body that is no JSON": (EVENT.format("body = '{'"), "event 4: cannot be read"),
    "a body that is no object": (EVENT.format("body = '[]'"), "event 4: cannot be read"),
    "a body with another field": (EVENT.format("body = '{\"surprise\":1}'"), "event 4: cannot be read"),
    "a payload": (EVENT.format("payload = '[1]'"), "event 4: its payload was changed"),
    "a payload taken away": (EVENT.format("payload = NULL"), "event 4: its payload is gone"),
    "a payload added": (
        "UPDATE runs_event SET payload = '1' WHERE run_id = %s AND kind = 'NoteAdded'",
        "its payload was changed",
    ),
    "a kind": (EVENT.format("kind = 'Nonsense'"), "event 4: cannot be read"),
    "a time": (EVENT.format("at = at + 1"), "event 4: its hash"),
    "an author": (EVENT.format("actor = 'person'"), "event 4: its hash"),
    "a turn": (EVENT.format("turn = 9"), "event 4: its hash"),
    "an epoch": (EVENT.format("epoch = 9"), "event 4: its hash"),
    "a deleted event in the middle": ("DELETE FROM runs_event WHERE run_id = %s AND seq = 4", "event 4 is missing"),
    "a deleted first event": ("DELETE FROM runs_event WHERE run_id = %s AND seq = 1", "event 1 is missing"),
    "a deleted tail": ("DELETE FROM runs_event WHERE run_id = %s AND seq >= 13", "the record ends at 12"),
    "the sequence of the run": ("UPDATE runs_run SET seq = seq - 1 WHERE id = %s", "the run's head"),
    "the state of the run": ("UPDATE runs_run SET state = '{\"v\":1}' WHERE id = %s", "not the fold"),
    "the identity of the run": ("UPDATE runs_run SET uid = 'other' WHERE id = %s", "event 1: its hash"),
    "the goal of the run": ("UPDATE runs_run SET goal = 'other' WHERE id = %s", "goal"),
    "the arguments of a call": (
        "UPDATE runs_call SET arguments = '{}' WHERE run_id = %s AND ordinal = 2",
        "call 1.2: its arguments",
    ),
    "the digest of arguments": (
        "UPDATE runs_call SET args_digest = '' WHERE run_id = %s AND ordinal = 1",
        "call 1.1: its args_digest",
    ),
    "a call that nobody proposed": (
        f"INSERT INTO runs_call (run_id, turn, ordinal, {COLUMNS})"
        f" SELECT run_id, 9, 9, {COLUMNS} FROM runs_call WHERE run_id = %s AND ordinal = 1 AND key IS NOT NULL",
        "call 9.9: nobody proposed it",
    ),
    "the digest that an approval binds": (
        "UPDATE runs_approval SET digest = 'x' WHERE run_id = %s",
        "approval 1 of call 1.2",
    ),
    "who may not decide": ("UPDATE runs_approval SET exclude = '[7]' WHERE run_id = %s", "approval 1 of call 1.2"),
    "the state of an approval": (
        "UPDATE runs_approval SET status = 'expired' WHERE run_id = %s",
        "approval 1 of call 1.2",
    ),
    "the goal": ("UPDATE runs_run SET goal = 'x' WHERE id = %s", "goal, inputs or facts"),
    "the checks that a call meets": (
        "UPDATE runs_call SET met = '[\"x\"]' WHERE run_id = %s AND ordinal = 1",
        "call 1.1: its met",
    ),
    "the agent's version": (
        "UPDATE runs_run SET agent_version_id = (SELECT max(id) FROM runs_agentversion) WHERE id = %s",
        "agent or starter",
    ),
    "the starter": (
        "UPDATE runs_run SET starter_id = (SELECT max(id) FROM auth_user) WHERE id = %s",
        "agent or starter",
    ),
    "a vote": (
        "UPDATE runs_decision SET vote = 'reject'"
        " WHERE approval_id IN (SELECT id FROM runs_approval WHERE run_id = %s)",
        "decisions",
    ),
}


class TestVerify:
    def test_finds_nothing_on_a_run_as_it_was_written(self, story: Story) -> None:
        assert verify(story.row) == []

    @pytest.mark.parametrize(("statement", "names"), EDITS.values(), ids=EDITS.keys())
    def test_names_a_single_edit(self, unguarded: Story, statement: str, names: str) -> None:
        sql(statement, unguarded.run.pk)
        assert any(names in fault for fault in verify(unguarded.row)), verify(unguarded.row)

    def test_names_two_events_that_changed_places(self, unguarded: Story) -> None:
        for old, new in ((5, 99), (6, 5), (99, 6)):
            sql("UPDATE runs_event SET seq = %s WHERE run_id = %s AND seq = %s", new, unguarded.run.pk, old)
        assert any("event 5" in fault for fault in verify(unguarded.row))

    def test_names_an_event_whose_hash_was_made_to_fit(self, unguarded: Story) -> None:
        """The chain goes on over the old hash, so the next event does not fit."""
        event = Event.objects.get(run=unguarded.run, seq=4)
        before = bytes(Event.objects.get(run=unguarded.run, seq=3).hash)
        forged = chain.event_hash(
            unguarded.row.uid, chain.stored_header(event), event.body.replace("5", "6"),
            bytes(event.payload_digest), None, before,
        )  # fmt: skip
        Event.objects.filter(run=unguarded.run, seq=4).update(body=event.body.replace("5", "6"), hash=forged)
        assert any(fault.startswith("event 5") for fault in verify(unguarded.row))

    def test_takes_an_erased_payload_that_the_record_names(self, story: Story) -> None:
        story.add(e.PayloadErased(4), person=story.starter.pk)
        sql("UPDATE runs_event SET payload = NULL WHERE run_id = %s AND seq = 4", story.run.pk)
        assert verify(story.row) == []

    def test_of_one_run_does_not_pass_for_another(self, unguarded: Story) -> None:
        other = Story()
        sql("UPDATE runs_run SET uid = 'other' WHERE id = %s", other.run.pk)
        assert verify(other.row) and verify(unguarded.row) == []


REFUSED = {
    "event_kept": "DELETE FROM runs_event WHERE seq = 1",
    "event_unchanged": "UPDATE runs_event SET body = '{{}}' WHERE seq = 1",
    "event_unchanged (payload)": "UPDATE runs_event SET payload = 'x' WHERE seq = 2",
    "event_unchanged (hash)": "UPDATE runs_event SET hash = state_digest WHERE seq = 1",
    "event_unchanged (person)": "UPDATE runs_event SET person_id = NULL WHERE seq = 1",
    "run_kept": "DELETE FROM runs_run",
    "run_only_forward": "UPDATE runs_run SET seq = seq - 1",
    "run_only_forward (epoch)": "UPDATE runs_run SET epoch = epoch - 1",
    "run_only_forward (uid)": "UPDATE runs_run SET uid = 'x'",
    "call_kept": "DELETE FROM runs_call",
    "call_closed": "UPDATE runs_call SET status = 'ready' WHERE ordinal = 1",
    "decision_kept": "DELETE FROM runs_decision",
    "decision_unchanged": "UPDATE runs_decision SET why = 'x'",
    "approval_kept": "DELETE FROM runs_approval",
    "approval_closed": "UPDATE runs_approval SET status = 'pending' WHERE status = 'consumed'",
    "approval_closed (digest)": "UPDATE runs_approval SET digest = 'x'",
    "question_kept": "DELETE FROM runs_question",
    "question_closed": "UPDATE runs_question SET status = 'open' WHERE status = 'answered'",
    "agent_version_kept": "DELETE FROM runs_agentversion",
    "agent_version_unchanged": "UPDATE runs_agentversion SET definition = '{{}}'",
    "policy_unchanged": "UPDATE runs_policy SET content = '{{}}'",
    "policy_unchanged (number)": "UPDATE runs_policy SET number = number + 1",
    "policy_kept": "DELETE FROM runs_policy",
}


class TestTriggers:
    def test_all_are_tried_here(self) -> None:
        assert {name.split(" ")[0] for name in REFUSED} == set(guards.RULES)

    @pytest.mark.parametrize(("rule", "statement"), REFUSED.items(), ids=REFUSED.keys())
    def test_refuse(self, story: Story, rule: str, statement: str) -> None:
        message = guards.RULES[rule.split(" ")[0]][3]
        with pytest.raises(DatabaseError, match=f"agentops: {message}"), transaction.atomic():
            sql(statement.replace("{{}}", "{}"))

    @pytest.mark.parametrize("status", ["queued", "failed", "cancelling"])
    def test_refuse_to_reopen_a_run_that_has_ended(self, status: str) -> None:
        ended = Story().add(e.RunEnded("cancelled"))
        with pytest.raises(DatabaseError, match="only moves forward"), transaction.atomic():
            sql("UPDATE runs_run SET status = %s WHERE id = %s", status, ended.run.pk)

    def test_refuse_to_empty_the_record(self, story: Story) -> None:
        """TRUNCATE passes by the triggers of rows; where there is none, a DELETE without a condition is its like."""
        postgresql = connection.vendor == "postgresql"
        if postgresql:
            sql("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="never deleted"), transaction.atomic():
            sql("TRUNCATE runs_event" if postgresql else "DELETE FROM runs_event")

    def test_refuse_a_second_event_in_one_place(self, story: Story) -> None:
        """Two writers that saw the same head: without this the record could fork (reliability.md 1.9)."""
        columns = ", ".join(f.column for f in Event._meta.concrete_fields)
        fork = f"INSERT INTO runs_event ({columns}) SELECT {columns} FROM runs_event WHERE run_id = %s AND seq = 4"
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(fork, story.run.pk)

    def test_let_a_payload_be_erased(self, story: Story) -> None:
        sql("UPDATE runs_event SET payload = NULL WHERE run_id = %s AND seq = 4", story.run.pk)

    def test_let_a_presumed_verdict_be_corrected(self) -> None:
        story = Story().turn(("send_message", MESSAGE)).approve(person("reviewer"))
        story.start()
        story.end("unknown").add(e.CallSettled("not_executed", "quiesced_lookup", presumed=True), call=1)
        key = story.picture.state.calls[1].key
        story.add(e.LateEvidence("ok", key, effect_ref="M-1"), call=1)
        step = next_step(story.picture.state, story.picture.state.t)
        assert isinstance(step, Record)
        story.keep(story.draft().put(*step.entries))
        assert (story.call().status, story.call().effect_ref, story.call().presumed) == ("done", "M-1", False)


@pytest.mark.parametrize(
    ("model", "name", "values"),
    [
        (Run, "run_status", machines.RUN),
        (Call, "call_status", tuple(machines.CALL)),
        (Call, "call_effect", machines.EFFECTS),
        (Call, "call_outcome", ("", *machines.OUTCOMES)),
        (Approval, "approval_status", tuple(machines.APPROVAL)),
        (Question, "question_status", tuple(machines.QUESTION)),
        (Decision, "decision_vote", ("approve", "reject")),
    ],
)
def test_the_constraints_of_the_database_are_the_tables_of_the_engine(
    model: Any, name: str, values: tuple[str, ...]
) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name])
            found = cursor.fetchone()[0]
        else:
            cursor.execute("SELECT sql FROM sqlite_master WHERE name = %s", [model._meta.db_table])
            found = cursor.fetchone()[0].split(f'CONSTRAINT "{name}" CHECK', 1)[1].split("CONSTRAINT", 1)[0]
    assert set(found.split("'")[1::2]) == set(values)


def test_an_end_closes_what_people_were_asked() -> None:
    story = Story().turn(("send_message", MESSAGE)).park()
    acts.cancel(story.run.pk, person("operator"))
    story.claim().add(e.RunEnded("cancelled"))
    assert not Approval.objects.filter(run=story.run, status="pending").exists()
    assert verify(story.row) == []
