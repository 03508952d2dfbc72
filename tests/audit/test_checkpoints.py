"""Once a minute the heads that moved and the configuration that is new are chained, in the database and outside."""

import json
import os
from importlib import import_module

import pytest
from django.db import IntegrityError, connection, transaction

from runs.actions import runs as acts
from runs.audit import outside
from runs.audit.checkpoints import checkpoint, locked_last
from runs.audit.witness import Witness
from runs.engine.next_step import Stop
from runs.models import Checkpoint, Head
from tests.journal.story import MESSAGE, ORDER, Story, person, publish
from tests.pages.story import counted


def told(line: int = -1) -> dict:
    return list(outside.lines(outside.place()))[line].said


def covered(line: int = -1) -> dict[int, int]:
    return {run: seq for _, run, seq, _ in told(line).get("runs", [])}


class TestACheckpoint:
    def test_covers_the_runs_that_moved_and_no_others(self, witness: Witness) -> None:
        one, two = Story(), Story().turn(("get_order", ORDER))
        assert witness.look(at_once=True) == ""
        assert covered() == {one.run.pk: one.row.seq, two.run.pk: two.row.seq}
        two.park()
        one.turn(("get_order", ORDER))
        witness.look(at_once=True)
        assert covered() == {one.run.pk: one.row.seq}

    def test_is_not_made_when_nothing_moved(self, witness: Witness) -> None:
        Story()
        witness.look(at_once=True)
        before = Checkpoint.objects.count()
        witness.look(at_once=True)
        assert Checkpoint.objects.count() == before

    def test_waits_for_its_minute(self, witness: Witness, settings) -> None:
        settings.AGENTOPS_CHECKPOINT = 60
        witness.look(at_once=True)
        Story()
        witness.look()
        assert not covered()
        settings.AGENTOPS_CHECKPOINT = 0.000001
        witness.look()
        assert covered()

    def test_covers_a_new_policy_a_new_agent_and_a_change_of_groups(self, witness: Witness) -> None:
        Story()
        witness.look(at_once=True)
        assert [number for number, _ in told()["policies"]] == [1]
        assert len(told()["agents"]) == 1
        publish(2)
        witness.look(at_once=True)
        assert [number for number, _ in told()["policies"]] == [2]
        assert "groups" not in told()
        new = person("promoted", "admin")
        witness.look(at_once=True)
        assert [new.pk, ["admin"]] in told()["groups"]
        assert told().keys() == {"groups", "people"}

    def test_covers_what_is_recorded_after_the_end_though_ended_runs_are_not_looked_at(self, witness: Witness) -> None:
        story = Story().turn(("send_message", MESSAGE)).stop(Stop("give_up"))
        acts.close_failed(story.run.pk, person("operator"), "enough")
        witness.look(at_once=True)
        assert not Head.objects.get(run=story.run).open
        acts.add_note(story.run.pk, person("operator"), "for the record")
        assert Head.objects.get(run=story.run).open
        witness.look(at_once=True)
        assert covered() == {story.run.pk: story.row.seq}

    def test_follows_the_one_before_and_no_two_follow_the_same(self, witness: Witness) -> None:
        Story()
        checkpoint(at_once=True)
        last = locked_last()
        assert bytes(last.previous) == bytes(Checkpoint.objects.get(number=last.number - 1).hash)
        with pytest.raises(IntegrityError), transaction.atomic():
            Checkpoint.objects.create(number=99, at=1, previous=bytes(last.previous), content="{}", hash=b"x" * 32)

    @pytest.mark.parametrize("change", ["UPDATE runs_checkpoint SET at = 1", "DELETE FROM runs_checkpoint"])
    def test_is_never_changed_or_deleted(self, witness: Witness, change: str) -> None:
        with pytest.raises(IntegrityError, match="checkpoints are never"), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(change)

    def test_costs_the_same_however_many_runs_have_ended(self, witness: Witness) -> None:
        def ended(times: int) -> None:
            for _ in range(times):
                story = Story().stop(Stop("give_up"))
                acts.close_failed(story.run.pk, person("operator"), "enough")

        def cost() -> int:
            Story()
            with counted() as queries:
                checkpoint(at_once=True)
            return len(queries)

        ended(2)
        witness.look(at_once=True)
        first = cost()
        ended(6)
        witness.look(at_once=True)
        assert cost() == first
        assert Head.objects.filter(open=True).count() == 2


def test_every_guard_still_stands_after_all_migrations(db: None) -> None:
    """A table that is made anew by a later migration loses its triggers on SQLite."""
    wanted = {"run_begun", "run_stirred", "safe_mode_closed"}
    for name in ("0002_guards", "0003_record"):
        wanted |= import_module(f"runs.migrations.{name}").RULES.keys()
    found = "SELECT tgname FROM pg_trigger" if connection.vendor == "postgresql" else "SELECT name FROM sqlite_master"
    with connection.cursor() as cursor:
        cursor.execute(found)
        assert wanted - {name for (name,) in cursor.fetchall()} == set()


class TestTheFileOutside:
    def test_is_complete_for_a_second_witness_that_comes_late(self, witness: Witness, settings, tmp_path) -> None:
        Story()
        witness.look(at_once=True)
        first = outside.place().read_bytes()
        settings.AGENTOPS_HEADS = tmp_path / "elsewhere"
        assert Witness().look() == ""
        assert outside.place().read_bytes() == first

    def test_gets_each_line_once_from_two_witnesses_of_the_same_file(self, witness: Witness) -> None:
        other = Witness()
        for _ in range(3):
            Story()
            checkpoint(at_once=True)
            witness.look()
            other.look()
        numbers = [line.number for line in outside.lines(outside.place())]
        assert numbers == list(range(len(numbers)))

    def test_that_begins_anew_is_said_but_not_at_the_first_start(self, witness: Witness, caplog) -> None:
        witness.look(at_once=True)
        assert "begin anew" not in caplog.text
        outside.place().unlink()
        assert witness.look() == ""
        assert "begin anew" in caplog.text
        assert told(1)

    def test_is_mended_after_a_write_that_was_cut_off(self, witness: Witness) -> None:
        Story()
        witness.look(at_once=True)
        whole = outside.place().read_bytes()
        os.truncate(outside.place(), len(whole) - 20)
        assert outside.tail(outside.place()) == list(outside.lines(outside.place()))[-1]
        assert Witness().look() == ""
        assert outside.place().read_bytes() == whole

    def test_that_cannot_be_written_is_said_and_stops_nothing(self, witness: Witness, settings, tmp_path) -> None:
        (tmp_path / "taken").write_text("a file where the folder should be")
        settings.AGENTOPS_HEADS = tmp_path / "taken"
        Story()
        assert "AGENTOPS_HEADS" in witness.look(at_once=True)
        settings.AGENTOPS_HEADS = tmp_path
        assert witness.look() == ""
        assert covered()

    def test_whose_end_cannot_be_read_is_said(self, witness: Witness) -> None:
        witness.look(at_once=True)
        with outside.place().open("ab") as file:
            file.write(b"nonsense\n")
        assert "cannot be read" in Witness().look()

    def test_is_signed_where_a_key_is_given(self, witness: Witness, settings, tmp_path) -> None:
        (tmp_path / "key").write_bytes(b"k" * 32)
        settings.AGENTOPS_HEADS_KEY = str(tmp_path / "key")
        witness.look(at_once=True)
        line = outside.tail(outside.place())
        assert line and line.signature == outside.signature(line, b"k" * 32)

    def test_has_a_last_line_that_is_found_however_long_the_lines_are(self, tmp_path) -> None:
        path = tmp_path / "long"
        path.write_text(
            "".join(
                json.dumps({"number": n, "at": 1, "previous": "", "content": "x" * 100_000, "hash": ""}) + "\n"
                for n in range(3)
            )
        )
        found = outside.tail(path)
        assert found and found.number == 2
