"""`manage.py verify_audit` finds what was edited, deleted, reordered, forked, cut or put back, and names it."""

import io
import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from runs.audit import outside
from runs.audit.check import Record
from runs.audit.checkpoints import Line
from runs.audit.witness import Witness
from runs.models import Checkpoint, Event
from tests.audit.tampering import sql
from tests.journal.story import ORDER, Story, publish


def verify(*args: str) -> tuple[int, str]:
    """(exit code, all that was said)."""
    said = io.StringIO()
    try:
        call_command("verify_audit", *args, stdout=said, stderr=said)
    except CommandError as error:
        return error.returncode, f"{said.getvalue()}{error}"
    return 0, said.getvalue()


@pytest.fixture
def story(witness: Witness) -> Story:
    """A run of two turns, covered, with a neighbour."""
    story = Story().turn(("get_order", ORDER))
    story.start()
    story.end()
    Story()
    witness.look(at_once=True)
    return story.turn(("get_order", ORDER))


def as_it_was_three_events_ago(story: Story) -> None:
    """The tail is cut and the row put back as if nothing had been there; the chain itself is sound."""
    seq = story.row.seq - 3
    last = Event.objects.get(run=story.run, seq=seq)
    sql("DELETE FROM runs_event WHERE run_id = %s AND seq > %s", story.run.pk, seq)
    sql("UPDATE runs_run SET seq = %s, head = %s WHERE id = %s", seq, bytes(last.hash), story.run.pk)


def gone(story: Story) -> None:
    for table in ("runs_event", "runs_callobject", "runs_call", "runs_head"):
        sql(f"DELETE FROM {table} WHERE run_id = %s", story.run.pk)
    sql("DELETE FROM runs_run WHERE id = %s", story.run.pk)


DAMAGE: dict[str, tuple[Callable[[Story], None], str]] = {
    "an edited event": (
        lambda s: sql("UPDATE runs_event SET at = at + 1 WHERE run_id = %s AND seq = 2", s.run.pk),
        "run {run}: event 2: its hash",
    ),
    "a deleted event": (
        lambda s: sql("DELETE FROM runs_event WHERE run_id = %s AND seq = 3", s.run.pk),
        "run {run}: event 3 is missing",
    ),
    "two events in another order": (
        lambda s: (
            [
                sql("UPDATE runs_event SET seq = %s WHERE run_id = %s AND seq = %s", new, s.run.pk, old)
                for old, new in ((3, 99), (4, 3), (99, 4))
            ]
            and None
        ),
        "run {run}: event 3",
    ),
    "a cut tail": (as_it_was_three_events_ago, "run {run}: event"),
    "a deleted run": (gone, "run {run}: is gone: checkpoint 1 covers it"),
    "an edited policy": (
        lambda s: sql("UPDATE runs_policy SET content = %s WHERE number = 1", json.dumps({"defaults": {"x": "allow"}})),
        "policy 1: is not what it was",
    ),
    "an edited reason of a policy": (
        lambda s: sql("UPDATE runs_policy SET reason = 'nobody said so' WHERE number = 1"),
        "policy 1: is not what it was",
    ),
    "an edited agent": (
        lambda s: sql("UPDATE runs_agentversion SET definition = '{}' WHERE id = %s", s.row.agent_version_id),
        "is not what it was",
    ),
    "an edited checkpoint": (
        lambda s: sql("UPDATE runs_checkpoint SET at = at + 1 WHERE number = 1"),
        "checkpoint 1: its hash does not match",
    ),
    "a deleted checkpoint": (
        lambda s: sql("DELETE FROM runs_checkpoint WHERE number = 1"),
        "checkpoint 1 stands outside and not in the database",
    ),
}


class TestTheRecord:
    def test_as_it_was_written_has_no_fault(self, story: Story, witness: Witness) -> None:
        assert verify()[0] == 0
        witness.look(at_once=True)
        publish(2)
        code, said = verify()
        assert (code, "2 runs verified, no fault; 3 checkpoints, 3 outside" in said) == (0, True)

    @pytest.mark.parametrize("name", DAMAGE)
    def test_with(self, story: Story, witness: Witness, name: str) -> None:
        damage, says = DAMAGE[name]
        witness.look(at_once=name == "a cut tail")
        damage(story)
        code, said = verify()
        assert code == 1
        assert says.format(run=story.run.pk) in said
        assert "the first bad place is" in said

    def test_that_was_cut_below_what_the_chain_alone_can_see_needs_the_checkpoint(
        self, story: Story, witness: Witness
    ) -> None:
        witness.look(at_once=True)
        as_it_was_three_events_ago(story)
        assert "is gone, checkpoint 2 covers it" in verify()[1]

    def test_that_was_put_back_from_a_backup(self, story: Story, witness: Witness) -> None:
        backup = transaction.savepoint()
        witness.look(at_once=True)
        transaction.savepoint_rollback(backup)
        code, said = verify()
        assert (code, "checkpoint 2 stands outside and not in the database" in said) == (1, True)
        assert verify("--without-heads")[0] == 0

    def test_that_forked(self, story: Story, witness: Witness, settings, tmp_path) -> None:
        backup = transaction.savepoint()
        witness.look(at_once=True)
        old = outside.place()
        transaction.savepoint_rollback(backup)
        settings.AGENTOPS_HEADS = tmp_path / "another"
        publish(2)
        Witness().look(at_once=True)
        code, said = verify("--heads", str(old))
        assert (code, "checkpoint 2 is another one outside: two histories" in said) == (1, True)

    def test_outside_that_was_edited(self, story: Story) -> None:
        path = outside.place()
        path.write_text(path.read_text().replace('\\"runs\\"', '\\"ruins\\"'))
        assert "outside, checkpoint 1: its hash does not match" in verify()[1]

    def test_outside_of_which_a_line_was_taken(self, story: Story, witness: Witness) -> None:
        witness.look(at_once=True)
        path = outside.place()
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:1] + lines[2:]))
        assert "outside, checkpoint 2: the one before is missing" in verify()[1]

    def test_outside_that_somebody_signed_without_the_key(self, story: Story, witness: Witness, settings, tmp_path):
        (tmp_path / "key").write_bytes(b"k" * 32)
        settings.AGENTOPS_HEADS_KEY = str(tmp_path / "key")
        witness.look(at_once=True)
        assert verify()[0] == 0
        (tmp_path / "key").write_bytes(b"z" * 32)
        assert "signature is not of this key" in verify()[1]

    def test_outside_of_which_all_signatures_were_taken(self, story: Story, witness: Witness, settings, tmp_path):
        """Who can write the file, but lacks the key, must not get by with no signatures at all."""
        (tmp_path / "key").write_bytes(b"k" * 32)
        settings.AGENTOPS_HEADS_KEY = str(tmp_path / "key")
        witness.look(at_once=True)
        unsigned = [replace(line, signature="") for line in outside.lines(outside.place())]
        outside.place().unlink()
        with outside.locked(outside.place()) as file:
            outside.write(file, unsigned)
        code, said = verify()
        assert (code, "outside, checkpoint 2: is the last and not signed" in said) == (1, True)

    def test_outside_that_was_emptied(self, story: Story) -> None:
        outside.place().write_bytes(b"")
        code, said = verify()
        assert (code, "outside: the file holds no head" in said) == (1, True)

    def test_of_a_long_time_is_compared_in_a_time_that_grows_with_it(self, story: Story) -> None:
        """A checkpoint a minute is half a million a year: each must not look at all others."""
        content = Checkpoint.objects.get(number=0).content

        def seconds(many: int) -> float:
            record = Record(None)
            record.stored = record.lines = {n: Line(n, 0, "", content, f"{n:x}") for n in range(many)}
            began = time.process_time()
            assert list(record._difference()) == []
            return time.process_time() - began

        assert min(seconds(4000) for _ in range(3)) < 8 * min(seconds(1000) for _ in range(3))

    def test_without_its_file_outside_is_not_called_sound(self, story: Story) -> None:
        outside.place().unlink()
        code, said = verify()
        assert (code, "--without-heads" in said) == (2, True)

    def test_of_one_run_is_compared_with_its_checkpoint_too(self, story: Story) -> None:
        other = Checkpoint.objects.latest("number")
        assert json.loads(other.content)["runs"]
        assert verify(str(story.run.pk))[0] == 0
        sql("UPDATE runs_event SET at = at + 1 WHERE run_id = %s AND seq = 2", story.run.pk)
        assert verify(str(story.run.pk))[0] == 1
