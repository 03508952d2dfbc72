"""What other code wrote, or what this code no longer has, is neither guessed at nor touched, and it is said why."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs.audit import upgrade
from runs.catalog import catalog
from runs.engine import events as e
from runs.journal import lease
from runs.journal.chain import sha
from runs.models import Event, Run
from runs.runner import advance
from tests.audit.tampering import sql
from tests.journal.story import MESSAGE, ORDER, Story, person
from tests.pages.story import browser

pytestmark = pytest.mark.django_db


def newer_state(story: Story) -> None:
    """As a newer version would have left it: the digest of its last event is that of its state."""
    state = json.dumps({**json.loads(story.row.state), "v": 2})
    sql("UPDATE runs_run SET state = %s WHERE id = %s", state, story.run.pk)
    sql(
        "UPDATE runs_event SET state_digest = %s WHERE run_id = %s AND seq = %s",
        sha(state),
        story.run.pk,
        story.row.seq,
    )


def newer_event(story: Story) -> None:
    sql("UPDATE runs_event SET kind = 'Telepathy' WHERE run_id = %s AND kind = 'ModelAnswered'", story.run.pk)


def due(story: Story) -> Run:
    sql("UPDATE runs_run SET due_at = 0 WHERE id = %s", story.run.pk)
    return story.row


def check(*options: str) -> tuple[int, str]:
    said = io.StringIO()
    try:
        call_command("upgrade_check", *options, stdout=said, stderr=said)
    except CommandError as error:
        return error.returncode, f"{said.getvalue()}{error}"
    return 0, said.getvalue()


class TestARunWithAStateOfNewerCode:
    def test_is_left_as_it_is_and_left_for_a_while(self) -> None:
        story = Story().turn(("get_order", ORDER)).park()
        newer_state(story)
        before = due(story)
        advance(story.run.pk)
        after = story.row
        assert (after.seq, after.state, after.crashes, after.lease_until) == (before.seq, before.state, 0, None)
        assert after.due_at and after.due_at > lease.now()
        epoch = after.epoch
        advance(story.run.pk)
        assert story.row.epoch == epoch

    def test_says_on_its_page_that_other_code_wrote_it(self) -> None:
        story = Story().turn(("get_order", ORDER)).park()
        newer_state(story)
        person("operator")
        answer = browser("operator").get(f"/runs/{story.run.pk}")
        assert answer.status_code == 409
        assert "another version of AgentOps" in answer.content.decode()
        assert browser("operator").post(f"/runs/{story.run.pk}/pause").status_code == 409
        assert browser("operator").get("/runs").status_code == 200


def test_a_run_with_an_event_of_newer_code_stops_for_people() -> None:
    story = Story().turn(("get_order", ORDER))
    story.start()
    story.end()
    story.park()
    newer_event(story)
    due(story)
    advance(story.run.pk)
    assert (story.row.status, story.row.picture.stop.reason) == ("needs_human", "unreadable")


def test_a_call_in_doubt_whose_tool_is_gone_stops_the_run_for_people() -> None:
    story = Story().turn(("refund_order", {"order_id": "O-1", "amount": "1.00", "currency": "EUR", "reason": "x"}))
    story.approve(person("second"))
    assert story.start() == "approval"
    fact = e.CallEnded("unknown")
    story.add(fact, call=1)
    tool = catalog().tools.pop("refund_order")
    try:
        state = json.loads(story.row.state)
        state["calls"]["1"] |= {"lu": True, "dl": 1}
        _believe(story, state)
        story.park()
        due(story)
        advance(story.run.pk)
        assert (story.row.status, story.row.picture.stop.reason) == ("needs_human", "unreadable")
        assert "its tool is not in AGENTOPS_TOOLS" in check()[1]
    finally:
        catalog().tools["refund_order"] = tool


def _believe(story: Story, state: dict[str, Any]) -> None:
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    sql("UPDATE runs_run SET state = %s WHERE id = %s", text, story.run.pk)
    last = Event.objects.filter(run=story.run).latest("seq")
    sql("UPDATE runs_event SET state_digest = %s WHERE run_id = %s AND seq = %s", sha(text), story.run.pk, last.seq)
    story.reload()


def definition(story: Story, **changes: Any) -> None:
    row = story.row.agent_version
    made = json.dumps({**row.definition, **changes})
    sql("UPDATE runs_agentversion SET definition = %s WHERE id = %s", made, row.pk)


LACKS: dict[str, tuple[Callable[[Story], None], str]] = {
    "a newer state": (newer_state, "run {run}: the run's state (version 2) was written by other code"),
    "a newer event": (newer_event, "run {run}: event 4: Telepathy version 1 is not known"),
    "a model that nobody provides": (lambda s: definition(s, model="oracle:x"), "run {run}: model 'oracle:x'"),
    "a script that is gone": (lambda s: definition(s, model="scripted:gone"), "run {run}: script 'gone' is not in"),
    "a tool that is gone": (
        lambda s: definition(s, tools=["get_order", "levitate"]),
        "run {run}: tools levitate are not",
    ),
    "limits that nobody knows": (lambda s: definition(s, limits={"luck": 3}), "run {run}: limit luck"),
}


class TestUpgradeCheck:
    @pytest.fixture
    def story(self) -> Story:
        story = Story().turn(("send_message", MESSAGE)).park()
        definition(story, model=f"scripted:{next(iter(catalog().scripts))}")
        return story

    def test_has_nothing_to_say_about_runs_of_this_code(self, story: Story) -> None:
        assert check() == (0, "every run can go on with this code\n")

    @pytest.mark.parametrize("name", LACKS)
    def test_finds(self, story: Story, name: str) -> None:
        damage, says = LACKS[name]
        damage(story)
        code, said = check()
        assert code == 1
        assert says.format(run=story.run.pk) in said
        assert "findings: see to them" in said

    def test_finds_a_waiting_call_whose_tool_was_changed(self, story: Story) -> None:
        state = json.loads(story.row.state)
        state["calls"]["1"]["def"] = "send_message@0123456789abcdef"
        _believe(story, state)
        assert f"run {story.run.pk}: call 1.1 send_message (waiting): was proposed for send_message@0123" in check()[1]
        assert "it will be denied, and the agent told to propose it anew" in check()[1]

    def test_can_be_asked_before_the_database_is_migrated(self, story: Story) -> None:
        sql("ALTER TABLE runs_agentversion DROP COLUMN checkpoint")
        sql("DROP INDEX run_by_start")
        sql("ALTER TABLE runs_run DROP COLUMN started_at")
        assert check()[0] == 0

    def test_leaves_out_runs_that_have_ended_unless_asked(self, story: Story) -> None:
        newer_event(story)
        sql("UPDATE runs_run SET status = 'failed', due_at = NULL, lease_until = NULL WHERE id = %s", story.run.pk)
        assert not [finding for finding in upgrade.findings() if finding.startswith("run")]
        assert [finding for finding in upgrade.findings(ended=True) if finding.startswith("run")]
