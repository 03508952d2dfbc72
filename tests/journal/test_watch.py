"""Looking again for what was presumed not executed: once for each time that is due, and nothing but looking."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from runs.audit import safe_mode
from runs.catalog import catalog
from runs.engine import events as e
from runs.engine.limits import SECOND
from runs.engine.next_step import next_step
from runs.journal import lease
from runs.journal.verify import verify
from runs.models import Call, Event, Incident, SafeMode
from runs.runner import flights
from runs.runner import watch as watching
from runs.runner.answers import add_late
from runs.runner.flights import Flight
from runs.sweep import Sweeper
from runs.tools.base import Kind, Outcome
from tests.demo.conftest import Service
from tests.journal.story import Story, person

pytestmark = pytest.mark.django_db
PICKUP = {"order_id": "O-1042", "day": "2026-12-04"}
LATER = (600.0, 86_400.0)


@pytest.fixture(scope="session")
def order_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("watch-service"))
    yield service
    service.end(9)
    service.web.close()


@pytest.fixture
def service(order_service: Service, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Service:
    order_service.web.post(order_service.url + "/admin/faults", data={"do": "start_over"})
    monkeypatch.setenv("DEMO_SERVICE_URL", order_service.url)
    settings.AGENTOPS_WATCH = LATER
    return order_service


@pytest.fixture
def presumed(service: Service) -> Story:
    """A pickup that two look-ups did not find, in a run that has ended; a look is due now."""
    story = presumed_in_open_turn()
    story.add(e.RunEnded("failed", "given up"), release=True)
    return due(story)


def presumed_in_open_turn() -> Story:
    story = Story(facts={"customer": "C-7"}).turn(("book_pickup_soon", PICKUP)).approve(person("reviewer"))
    assert story.start() == "approval"
    story.end("unknown")
    for n in (1, 2):
        story.add(e.CallProbed(n, "lookup", "asked"), call=1)
        story.add(e.CallProbed(n, "lookup", "told", "not_found"), call=1)
    step = next_step(story.picture.state, lease.now())
    story.keep(story.draft().put(*step.entries))
    call = story.call()
    assert (call.status, call.presumed, call.watch_at) == ("not_executed", True, call.ended_at + 600 * SECOND)
    return story


def due(story: Story) -> Story:
    """Ten minutes ago."""
    call = story.call()
    Call.objects.filter(run=story.run).update(watch_at=lease.now(), ended_at=call.ended_at - 600 * SECOND)
    return story


def look(story: Story) -> Call:
    watching.watch(story.run.pk, 1, 1)
    return story.call()


def book(service: Service, story: Story) -> str:
    """The request that was presumed lost arrives."""
    body = PICKUP | {"reference": story.call().key}
    return str(service.http("POST", "/pickups", body).json()["id"])


class TestALook:
    def test_that_finds_it_corrects_the_call_and_opens_one_incident(self, presumed: Story, service: Service) -> None:
        name = book(service, presumed)
        before = presumed.row.status
        call = look(presumed)
        assert (call.status, call.outcome, call.effect_ref, call.watch_at) == ("done", "ok", name, None)
        assert presumed.kinds[-2:] == ["LateEvidence", "IncidentOpened"]
        incident = Incident.objects.get(run=presumed.run)
        assert (incident.turn, incident.ordinal) == (1, 1) and "not executed; it turned out ok" in incident.what
        assert presumed.row.status == before and presumed.row.lease_until is None, "it moves no run"
        assert service.effects("kind=pickup") == 1 and lease.looks() == []

    def test_that_finds_nothing_leaves_a_line_in_the_log_and_the_next_time(
        self, presumed: Story, caplog: pytest.LogCaptureFixture
    ) -> None:
        row = presumed.row
        call = look(presumed)
        assert call.watch_at == call.ended_at + 86_400 * SECOND and call.status == "not_executed"
        assert "still not found" in caplog.text and f"run {row.pk} call 1.1" in caplog.text
        assert (presumed.row.seq, presumed.row.head) == (row.seq, row.head), "nothing is recorded"

    def test_that_is_the_last_and_finds_nothing_ends_the_watch(self, presumed: Story) -> None:
        Call.objects.filter(run=presumed.run).update(ended_at=lease.now() - 86_400 * SECOND)
        assert look(presumed).watch_at is None
        assert lease.looks() == []

    def test_that_told_nothing_is_made_up_for_and_not_for_ever(
        self, presumed: Story, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        service.arm("error", path="/pickups", times=2)
        for ago, again in ((86_400, True), (2 * 86_400, False)):
            now = lease.now()
            Call.objects.filter(run=presumed.run).update(ended_at=now - ago * SECOND, watch_at=now)
            at = look(presumed).watch_at
            assert (at is not None and at - now >= 600 * SECOND) is again and (at is not None) is again
        assert "told nothing: http_500" in caplog.text and "still not found" not in caplog.text

    def test_that_is_not_due_asks_nobody(self, presumed: Story, service: Service) -> None:
        Call.objects.filter(run=presumed.run).update(watch_at=lease.now() + 60 * SECOND)
        book(service, presumed)
        assert look(presumed).status == "not_executed"

    def test_of_a_tool_that_is_gone_says_so_and_is_tried_by_others_later(
        self, presumed: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.delitem(catalog().tools, "book_pickup_soon")
        now = lease.now()
        at = look(presumed).watch_at
        assert at is not None and at - now >= 600 * SECOND and "nothing here can look it up" in caplog.text

    def test_by_newer_code_that_takes_other_arguments_is_over_at_once(
        self, presumed: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        other = replace(catalog().tools["get_order"], look_up=catalog().tools["get_order"].run)
        monkeypatch.setitem(catalog().tools, "book_pickup_soon", other)
        logging.getLogger("runs.runner.flights").disabled = False
        assert look(presumed).status == "not_executed"
        assert "ValidationError" in caplog.text and "no answer in time" not in caplog.text

    def test_in_safe_mode_waits(self, presumed: Story, service: Service) -> None:
        book(service, presumed)
        SafeMode.objects.create(began_at=1, why="restored", known=0, head_number=1, head_hash=b"x")
        assert safe_mode.in_force() and Sweeper().sweep() == []
        at = presumed.call().watch_at
        assert (look(presumed).status, presumed.call().watch_at) == ("not_executed", at)


class Between:
    """Takes the place of the thread pool: before the first flight takes off, something else happens."""

    def __init__(self, first: Callable[[], object]) -> None:
        self.first: Callable[[], object] | None = first

    def submit(self, fly: Callable[[Any], None], landed: Any) -> None:
        first, self.first = self.first, None
        if first:
            first()
        fly(landed)


class TestTwoLooksAtOnce:
    def test_are_one(self, presumed: Story, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second message is worked off while the first look is out at the remote."""
        book(service, presumed)
        tool, met = catalog().tools["book_pickup_soon"], []

        def meanwhile(ctx: Any, **given: Any) -> Outcome:
            met.append(ctx.key)
            return tool.look_up(ctx, **given)

        monkeypatch.setitem(catalog().tools, "book_pickup_soon", replace(tool, look_up=meanwhile))
        threads, flights.AIR = flights.AIR, Between(lambda: look(presumed))  # type: ignore[assignment]
        try:
            look(presumed)
        finally:
            flights.AIR = threads
        assert len(met) == 1 and presumed.kinds.count("LateEvidence") == 1

    def test_that_both_read_that_it_is_due_are_one(
        self, presumed: Story, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second takes the look, and is done with it, between what the first reads and what it writes."""
        book(service, presumed)
        tool, met = catalog().tools["book_pickup_soon"], []

        def counted(ctx: Any, **given: Any) -> Outcome:
            met.append(ctx.key)
            return tool.look_up(ctx, **given)

        monkeypatch.setitem(catalog().tools, "book_pickup_soon", replace(tool, look_up=counted))
        between = [look]

        def about_to_write(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
            if between and sql.startswith('UPDATE "runs_call" SET "watch_at"'):
                between.pop()(presumed)
            return execute(sql, *rest)

        with connection.execute_wrapper(about_to_write):
            look(presumed)
        assert between == [], "there was no such moment"
        assert len(met) == 1 and presumed.kinds.count("LateEvidence") == 1

    def test_of_which_one_was_frozen_say_the_same_once(self, presumed: Story, service: Service) -> None:
        book(service, presumed)
        call = look(presumed)
        frozen = found(call)
        add_late(presumed.run.pk, frozen)
        assert presumed.kinds.count("LateEvidence") == presumed.kinds.count("IncidentOpened") == 1

    def test_in_a_turn_that_is_still_open_say_the_same_once(self, service: Service) -> None:
        story = due(presumed_in_open_turn().park())
        book(service, story)
        call = look(story)
        assert call.status == "not_executed" and story.row.due_at == 0, "the next step settles it"
        add_late(story.run.pk, found(call))
        assert story.kinds.count("LateEvidence") == story.kinds.count("IncidentOpened") == 1
        story.claim()
        story.keep(story.draft().put(*next_step(story.picture.state, lease.now()).entries))
        assert (story.call().status, story.call().watch_at) == ("done", None)


def found(call: Call) -> Flight:
    """What a second look, that was frozen on its way back, has in hand."""
    result = Outcome(kind=Kind.OK, effect_ref=call.effect_ref or "P-1")
    return Flight(
        1, "lookup", lambda flight: None, 5, effect=True, turn=1, revision=1, key=call.key, args=call.arguments,
        result=result,
    )  # fmt: skip


class TestARecordThatWasChanged:
    @pytest.mark.parametrize("column", ["key", "arguments"])
    def test_is_not_asked_about(
        self, presumed: Story, service: Service, column: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        book(service, presumed)
        other = {"key": "f" * 64, "arguments": json.dumps(PICKUP | {"order_id": "O-1043"})}
        Call.objects.filter(run=presumed.run).update(**{column: other[column]})
        assert look(presumed).status == "not_executed" and "record is damaged" in caplog.text
        assert "LateEvidence" not in presumed.kinds

    def test_is_not_written_to(self, presumed: Story, service: Service) -> None:
        book(service, presumed)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_run SET state = '{}' WHERE id = %s", [presumed.run.pk])
        seq = presumed.row.seq
        call = look(presumed)
        assert presumed.row.seq == seq == Event.objects.filter(run=presumed.run).count()
        assert call.status == "not_executed" and call.watch_at is not None


def test_what_a_watch_leaves_verifies(service: Service) -> None:
    story = presumed_in_open_turn()
    story.add(e.RunEnded("failed", "given up"), release=True)
    Call.objects.filter(run=story.run).update(watch_at=lease.now())
    book(service, story)
    assert look(story).status == "done"
    assert verify(story.row) == []


def test_the_sweep_asks_for_few_looks_at_a_time(presumed: Story) -> None:
    assert lease.looks() == [(presumed.run.pk, 1, 1)] and lease.looks(0) == []
    assert Sweeper().sweep() == [], "a look is no run"
