"""The trace of a run: what was proposed, shown, decided, executed and blocked, and no argument."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs.actions import approvals
from runs.actions import runs as acts
from runs.audit.trace import trace
from runs.engine import events as e
from runs.journal.chain import entry_of
from runs.models import Event
from tests.audit.tampering import sql
from tests.journal.story import MESSAGE, ORDER, Story, person

pytestmark = pytest.mark.django_db


def exported(story: Story) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("export_trace", str(story.run.pk), stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def kinds(lines: list[dict[str, Any]]) -> list[str]:
    return [line["type"] for line in lines]


@pytest.fixture
def sent() -> Story:
    """A message that a person approved, and that was sent."""
    story = Story().turn(("send_message", MESSAGE)).approve(person("operator"))
    story.start()
    return story.end().add(e.RunEnded("succeeded"))


def test_tells_an_approved_call_from_its_proposal_to_the_end(sent: Story) -> None:
    lines = exported(sent)
    assert kinds(lines) == [
        "action_proposed", "approval_requested", "approval_decision", "action_executed", "session_end",
    ]  # fmt: skip
    proposed, asked, decided, executed, end = lines
    assert proposed["action"] == asked["action"] == executed["action"]
    assert asked["approval_id"] == decided["approval_id"] == executed["approval_id"]
    assert {line["action_id"] for line in lines[:4]} == {"call:1.1:r1"}
    assert {line["session_id"] for line in lines} == {sent.run.uid} and end["reason"] == "succeeded"


def test_shows_no_argument(sent: Story) -> None:
    assert MESSAGE["text"] not in json.dumps(exported(sent))


def test_blocks_what_was_refused_withdrawn_or_never_started() -> None:
    story = Story().turn(("send_message", MESSAGE), ("send_message", MESSAGE), ("get_order", ORDER))
    approval = story.approval(1)
    approvals.decide(approval.pk, person("operator"), "reject", approval.digest, "no")
    acts.cancel(story.run.pk, person("operator"))
    story.reload().add(e.RunEnded("cancelled"))
    lines = exported(story)
    reasons = [line["reason"] for line in lines if line["type"] == "action_blocked"]
    assert reasons == ["refused by a person", "withdrawn", "not executed when the run ended: cancelled"]
    assert [line["decision"] for line in lines if line["type"] == "approval_decision"] == ["deny", "deny"]
    assert kinds(lines).index("interrupt") < len(lines) - 2


def test_tells_a_vote_of_the_bytes_that_it_names(sent: Story) -> None:
    entries = [entry_of(event) for event in Event.objects.filter(run=sent.run).order_by("seq")]
    other = [replace(x, fact=replace(x.fact, digest="d")) if isinstance(x.fact, e.Decided) else x for x in entries]
    (decided,) = [line for line in trace("run", other) if line["type"] == "approval_decision"]
    assert decided["action_id"] == "digest:d"


def test_is_not_written_of_a_record_with_faults(sent: Story) -> None:
    sql("UPDATE runs_event SET at = at + 1 WHERE run_id = %s AND seq = 3", sent.run.pk)
    with pytest.raises(CommandError, match="event 3"):
        exported(sent)


def test_is_of_one_run() -> None:
    with pytest.raises(CommandError, match="no run 4711"):
        call_command("export_trace", "4711")
