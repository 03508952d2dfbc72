"""A database that is older than its head outside advances nothing until an admin has said so, with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from runs import health
from runs.actions import approvals, policies
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.actions.safe_mode import accept
from runs.audit import outside, safe_mode
from runs.audit.witness import Witness, look_at_start
from runs.journal import lease
from runs.journal.append import LeaseLost
from runs.models import Checkpoint, Policy, Run, SafeMode
from runs.runner import advance
from runs.sweep import Sweeper
from tests.audit.test_verify_audit import verify
from tests.journal.story import MESSAGE, ORDER, Story, person
from tests.pages.story import browser, seed


class Restored:
    """A waiting run and a due one; a backup; more happens, one more run begins; the backup is put back."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.waiting = Story().turn(("send_message", MESSAGE)).park()
        self.due = Story().turn(("get_order", ORDER)).park()
        self.still = Story().turn(("send_message", MESSAGE)).park()
        witness.look(at_once=True)
        backup = transaction.savepoint()
        approval = self.waiting.approval()
        approvals.decide(approval.pk, person("operator"), "approve", approval.digest)
        self.new = Story()
        witness.look(at_once=True)
        transaction.savepoint_rollback(backup)
        assert safe_mode.in_force() is None
        witness.look()


@pytest.fixture
def restored(witness: Witness) -> Restored:
    return Restored(witness)


class TestARestoredDatabase:
    def test_is_in_safe_mode_and_says_which_runs_had_gone_further(self, restored: Restored) -> None:
        found = safe_mode.in_force()
        assert found is not None
        waiting, new = found.further
        assert (waiting["run"], waiting["here"]) == (restored.waiting.run.pk, restored.waiting.row.seq)
        assert waiting["outside"] > waiting["here"]
        assert (new["run"], new["here"]) == (restored.new.run.pk, 0)

    def test_gives_no_run_to_a_worker_and_wakes_none(self, restored: Restored) -> None:
        before = restored.due.row
        assert lease.due() == [before.pk]
        assert lease.claim(before.pk) is None
        advance(before.pk)
        assert Sweeper().sweep() == []
        assert (restored.due.row.seq, restored.due.row.epoch) == (before.seq, before.epoch)

    def test_takes_the_lease_of_whoever_still_holds_one(self, witness: Witness) -> None:
        witness.look(at_once=True)
        backup = transaction.savepoint()
        Story()
        witness.look(at_once=True)
        transaction.savepoint_rollback(backup)
        held = Story()
        witness.look()
        with pytest.raises(LeaseLost):
            held.turn(("get_order", ORDER))
        assert (held.row.status, held.row.lease_until) == ("queued", None)

    def test_takes_no_decision_and_starts_nothing(self, restored: Restored) -> None:
        approval = restored.waiting.approval()
        with pytest.raises(Refused, match="Safe mode") as refused:
            approvals.decide(approval.pk, person("operator"), "approve", approval.digest)
        assert refused.value.status == 503
        with pytest.raises(Refused, match="Safe mode"):
            Story()
        with pytest.raises(Refused, match="Safe mode"):
            acts.add_note(restored.due.run.pk, person("operator"), "hello")

    def test_still_takes_a_kill_switch(self, restored: Restored) -> None:
        current = Policy.objects.get(current=True)
        admin = person("boss", "admin")
        assert policies.publish(admin, {**current.content, "off": ["*"]}, "to be safe", current.number).current

    def test_is_told_by_health_without_sending_people_away(self, restored: Restored) -> None:
        for kind in ("worker", "sweeper"):
            health.beat(kind, f"{kind}:1")
        found = health.snapshot()
        assert not found["ok"]
        assert "Safe mode" in found["record"]["what_to_do"]
        assert health.serves(found)

    def test_gets_no_checkpoint_and_no_line_outside(self, restored: Restored) -> None:
        before = outside.place().read_bytes()
        restored.witness.look(at_once=True)
        assert outside.place().read_bytes() == before

    def test_is_noticed_by_a_process_that_starts(self, restored: Restored) -> None:
        found = safe_mode.in_force()
        look_at_start()
        assert safe_mode.in_force() == found


class TestAccepting:
    def test_is_for_admins_with_a_reason(self, restored: Restored) -> None:
        with pytest.raises(Refused, match="needs the group admin"):
            accept(person("operator"), "fine")
        with pytest.raises(Refused, match="Say why"):
            accept(person("boss", "admin"), " ")
        assert safe_mode.in_force()

    def test_puts_every_live_run_to_a_person_unless_told_otherwise(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died")
        assert safe_mode.in_force() is None
        for story in (restored.waiting, restored.due, restored.still):
            assert (story.row.status, story.row.picture.stop.reason) == ("needs_human", "restored")
        acts.resume(restored.waiting.run.pk, person("operator"))
        assert restored.waiting.row.status == "waiting_approval"

    def test_may_let_those_go_on_that_are_not_known_to_have_gone_further(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died", hold_all=False)
        assert restored.waiting.row.picture.stop.reason == "restored"
        assert restored.still.row.status == "waiting_approval"
        assert lease.claim(restored.due.run.pk) is not None

    def test_is_the_next_checkpoint_and_everything_verifies_again(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died")
        Story()
        restored.witness.look(at_once=True)
        assert safe_mode.in_force() is None
        code, said = verify()
        assert (code, "no fault" in said) == (0, True), said
        line = next(line for line in outside.lines(outside.place()) if line.resumes is not None)
        assert line.said["accepted"] | {"person": 0} == {
            "person": 0, "reason": "disk died", "held": 3, "further": 2, "outside": 2, "here": 1,
        }  # fmt: skip

    def test_does_not_hide_the_next_restore(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died")
        restored.witness.look(at_once=True)
        backup = transaction.savepoint()
        Story()
        restored.witness.look(at_once=True)
        transaction.savepoint_rollback(backup)
        restored.witness.look()
        assert safe_mode.in_force()

    def test_holds_for_a_second_witness_that_had_seen_less(self, witness: Witness, settings: Any, tmp_path) -> None:
        other, there = Witness(), tmp_path / "there"
        Story()
        witness.look(at_once=True)
        backup = transaction.savepoint()
        Story()
        witness.look(at_once=True)
        settings.AGENTOPS_HEADS = there
        other.look()
        settings.AGENTOPS_HEADS = tmp_path
        Story()
        witness.look(at_once=True)
        transaction.savepoint_rollback(backup)
        witness.look()
        accept(person("boss", "admin"), "disk died")
        witness.look(at_once=True)
        settings.AGENTOPS_HEADS = there
        assert other.look(at_once=True) == ""
        assert safe_mode.in_force() is None
        assert verify("--heads", str(outside.place()))[0] == 0

    def test_is_never_changed_afterwards(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died")
        with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
            SafeMode.objects.update(reason="nothing happened")

    def test_a_second_time_is_refused(self, restored: Restored) -> None:
        accept(person("boss", "admin"), "disk died")
        with pytest.raises(Refused, match="not in force"):
            accept(person("boss", "admin"), "again")
        assert Checkpoint.objects.filter(resumes__isnull=False).count() == 1


class TestThePages:
    @pytest.fixture(autouse=True)
    def people(self, restored: Restored) -> None:
        seed()

    def test_say_what_is_going_on_wherever_one_looks(self) -> None:
        for path in ("/", "/runs", f"/runs/{Run.objects.latest('pk').pk}", "/health"):
            text = browser("operator").get(path).content.decode()
            assert "the database is older than its record outside" in text
            assert 'href="/safe-mode"' in text

    def test_list_what_may_have_been_done_and_leave_the_decision_to_admins(self, restored: Restored) -> None:
        text = browser("operator").get("/safe-mode").content.decode()
        assert f'href="/runs/{restored.waiting.run.pk}"' in text
        assert "started after the backup" in text
        assert "An admin decides" in text
        assert browser("operator").post("/safe-mode", {"why": "x", "hold": "all"}).status_code == 403
        assert safe_mode.in_force()

    def test_let_an_admin_go_on(self) -> None:
        assert browser("admin").post("/safe-mode", {"why": "", "hold": "all"}).status_code == 422
        assert browser("admin").post("/safe-mode", {"why": "disk died", "hold": "further"}).status_code == 302
        text = browser("admin").get("/safe-mode").content.decode()
        assert "Safe mode is not in force" in text
        assert "disk died" in text
        assert "older than its record outside. Nothing advances" not in text
