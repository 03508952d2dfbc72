"""The right to advance: one holder, found again when it falls silent; and what status and due time a run has."""

import time
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from runs.engine import events as e
from runs.engine.limits import SECOND
from runs.engine.next_step import Stop
from runs.engine.state import Ask, CallState, RunState
from runs.engine.state import Stop as Stopped
from runs.journal import lease
from runs.journal.append import project
from runs.journal.integrity import opening
from runs.models import Run
from runs.runner.loop import Runner
from tests.journal.story import MESSAGE, ORDER, Story

pytestmark = pytest.mark.django_db
LENGTH = int(settings.AGENTOPS_LEASE * SECOND)


def put(story: Story, **columns: Any) -> None:
    Run.objects.filter(pk=story.run.pk).update(**columns)


class TestClaim:
    def test_takes_the_lease_and_grows_the_epoch(self) -> None:
        story = Story()
        row = story.row
        assert (row.epoch, row.status, row.crashes) == (1, "running", 0)
        assert 0 < row.lease_until - lease.now() <= LENGTH
        assert abs(row.due_at - row.lease_until) < SECOND

    def test_is_refused_while_somebody_holds_it(self) -> None:
        story = Story()
        assert lease.claim(story.run.pk) is None
        assert story.row.epoch == 1

    def test_is_refused_before_the_run_is_due(self) -> None:
        story = Story().turn(("send_message", MESSAGE)).park()
        assert lease.claim(story.run.pk) is None
        put(story, due_at=lease.now() + 60 * SECOND)
        assert lease.claim(story.run.pk) is None

    def test_of_a_lapsed_lease_counts_a_crash(self) -> None:
        story = Story()
        for crashes in (1, 2):
            put(story, lease_until=7, due_at=7)
            story.claim()
            assert (story.row.crashes, story.row.epoch) == (crashes, crashes + 1)

    def test_of_a_run_that_was_let_go_counts_none(self) -> None:
        story = Story().park().claim()
        assert (story.row.crashes, story.row.epoch) == (0, 2)

    @pytest.mark.parametrize("status", ["paused", "cancelling", "needs_human"])
    def test_does_not_hide_what_people_did(self, status: str) -> None:
        story = Story().park()
        put(story, status=status, due_at=0)
        story.claim()
        assert story.row.status == status

    def test_of_an_ended_run_is_refused(self) -> None:
        story = Story().add(e.RunEnded("failed"))
        assert (story.row.due_at, story.row.lease_until, lease.claim(story.run.pk)) == (None, None, None)


class TestBeat:
    def test_only_reads_while_half_of_the_lease_is_left(self) -> None:
        story = Story()
        before = story.row
        seq, until, _ = lease.beat(story.picture)
        assert (seq, until) == (before.seq, before.lease_until)
        assert story.row.due_at == before.due_at

    def test_renews_below_half(self) -> None:
        story = Story()
        put(story, lease_until=lease.now() + LENGTH // 3, due_at=lease.now() + LENGTH // 3)
        before = lease.now()
        _, until, _ = lease.beat(story.picture)
        assert until is not None and before + LENGTH <= until <= lease.now() + LENGTH
        assert until == story.row.lease_until == story.row.due_at

    def test_never_makes_the_holder_believe_in_an_earlier_time(self) -> None:
        """Or a worker that was frozen in mid-beat would send after its lease had ended."""
        story = Story()

        def slow(execute: Any, *args: Any) -> Any:
            found = execute(*args)
            time.sleep(0.02)  # what was read is as old as this when it is here
            return found

        with connection.execute_wrapper(slow):
            _, _, skew = lease.beat(story.picture)
        clock = lease.now()
        assert lease.local() + skew >= clock

    def test_an_answer_that_was_long_in_coming_puts_no_times_into_the_future(self) -> None:
        """Or what follows a partition is recorded as later than it was, and what expires does so too early."""
        story = Story()
        slow = iter((0.5, 0.5))

        def late(execute: Any, *args: Any) -> Any:
            time.sleep(next(slow, 0))
            return execute(*args)

        with connection.execute_wrapper(late):
            _, _, skew = lease.beat(story.picture)
        assert lease.now() <= lease.local() + skew <= lease.now() + lease.QUICK

    def test_tells_that_the_lease_is_over(self) -> None:
        story = Story()
        held = story.picture
        put(story, lease_until=7, due_at=7)
        story.claim()
        assert lease.beat(held)[1] is None
        story.park()
        assert lease.beat(story.picture)[1] is None

    def test_tells_that_others_appended(self) -> None:
        story = Story()
        held = story.picture
        story.add(e.NoteAdded("x"))
        assert lease.beat(held)[0] == held.seq + 1


class TestTheClock:
    """Leases, expiries and due times are told by the database's clock; hosts may be hours apart."""

    def test_is_the_databases(self, monkeypatch: pytest.MonkeyPatch) -> None:
        postgresql = connection.vendor == "postgresql"
        if postgresql:  # a file database has this host's clock
            tomorrow = time.time_ns() + 24 * 3600 * 10**9
            monkeypatch.setattr(time, "time_ns", lambda: tomorrow)
        sql = "extract(epoch FROM clock_timestamp())" if postgresql else "(julianday('now') - 2440587.5) * 86400.0"
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {sql}")
            told = float(cursor.fetchone()[0]) * SECOND
        assert abs(lease.now() - told) < 5 * SECOND

    def test_of_a_host_that_is_set_back_does_not_lengthen_a_lease(self, monkeypatch: pytest.MonkeyPatch) -> None:
        story = Story()
        runner = Runner(story.row, story.picture, lease.now() - lease.local(), opening(story.run.pk))
        assert runner._may_send()
        runner.picture = replace(runner.picture, lease_until=lease.now() - SECOND)
        an_hour_ago = time.time_ns() - 3600 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: an_hour_ago)
        assert not runner._may_send(), "its lease is over, whatever its host believes"


class TestDue:
    def test_lists_the_longest_waiting_first_and_nothing_that_is_not_due(self) -> None:
        waits, lapsed, runnable = Story().turn(("send_message", MESSAGE)).park(), Story(), Story().park()
        put(lapsed, lease_until=7, due_at=7)
        held = Story()
        later = Story().park()
        put(later, due_at=lease.now() + 60 * SECOND)
        assert lease.due() == [runnable.run.pk, lapsed.run.pk]
        assert lease.due(1) == [runnable.run.pk]
        assert not {waits.run.pk, held.run.pk, later.run.pk} & set(lease.due())

    def test_drains_thousands_oldest_first(self) -> None:
        story = Story().park()
        row = story.row
        many = [
            Run(
                uid=f"u{i}",
                agent_version=row.agent_version,
                starter=row.starter,
                goal="g",
                started_at=1,
                state=row.state,
                due_at=i,
            )
            for i in range(1, 1201)
        ]
        Run.objects.bulk_create(many)
        found: list[int] = []
        put(story, due_at=None)
        while batch := lease.due():
            found += batch
            Run.objects.filter(pk__in=batch).update(due_at=None)
        assert found == [run.pk for run in many]


NOW = 1_000 * SECOND
LATER = NOW + 9 * SECOND


def state(*calls: CallState, **fields: Any) -> RunState:
    return RunState(calls=dict(enumerate(calls, 1)), turn=1, segment=1, **fields)


def asked(**fields: Any) -> CallState:
    return CallState("waiting", approval=1, approval_status="pending", effect="keyed", **fields)


DOUBT = CallState("unknown", effect="keyed", resend_until=LATER + 1)
PARKED: dict[str, tuple[RunState, str, int | None]] = {
    "runnable": (state(CallState("ready", effect="read")), "queued", 0),
    "to be asked": (state(), "queued", 0),
    "an approval": (state(asked()), "waiting_approval", None),
    "an approval that expires": (state(asked(expires=LATER)), "waiting_approval", LATER),
    "an approval that has expired": (state(asked(expires=NOW)), "queued", 0),
    "a question": (state(CallState("waiting", effect="host", question=True)), "waiting_input", None),
    "a back-off": (state(CallState("ready", due=LATER)), "queued", LATER),
    "a model to be asked later": (state(ask=Ask(why="429", tries=1, due=LATER)), "queued", LATER),
    "a probe later": (state(CallState("unknown", effect="keyed", due=LATER, resend_until=LATER + 1)), "queued", LATER),
    "a probe now": (state(DOUBT), "queued", 0),
    "an effect that only people can tell, not yet stopped": (state(CallState("unknown", effect="opaque")), "queued", 0),
    "paused": (state(CallState("ready"), paused=True), "paused", None),
    "paused with an expiry": (state(asked(expires=LATER), paused=True), "paused", LATER),
    "stopped": (state(stop=Stopped("stalled", "repeats")), "stalled", None),
    "cancelling": (state(cancel=True), "cancelling", 0),
    "cancelling with a look-up later": (
        state(CallState("unknown", effect="lookup", look_up=True, due=LATER), cancel=True),
        "cancelling",
        LATER,
    ),
    "cancelling with an effect put to people": (
        state(CallState("unknown", effect="opaque"), cancel=True, stop=Stopped("needs_human", "unknown_effect")),
        "needs_human",
        None,
    ),
    "an executing call of a dead worker": (state(CallState("executing", effect="opaque")), "queued", 0),
    "ended": (state(end="succeeded"), "succeeded", None),
}


class TestStatusAndDueTime:
    @pytest.mark.parametrize(("found", "status", "due"), PARKED.values(), ids=PARKED.keys())
    def test_without_a_lease(self, found: RunState, status: str, due: int | None) -> None:
        assert project(found, None, NOW) == (status, due)

    @pytest.mark.parametrize(("found", "status", "due"), PARKED.values(), ids=PARKED.keys())
    def test_under_a_live_lease(self, found: RunState, status: str, due: int | None) -> None:
        shown = "running" if status in ("queued", "waiting_approval", "waiting_input") else status
        assert project(found, LATER, NOW) == (shown, LATER)

    @pytest.mark.parametrize(("found", "status", "due"), PARKED.values(), ids=PARKED.keys())
    def test_under_a_lapsed_lease_the_run_is_due_at_once(self, found: RunState, status: str, due: int | None) -> None:
        assert project(found, NOW - 1, NOW) == (status, 0)

    def test_three_crashes_make_it_due_for_its_stop(self) -> None:
        assert project(state(CallState("ready")), None, NOW, crashes=3) == ("queued", 0)

    def test_are_what_the_row_says_after_each_append(self) -> None:
        story = Story().turn(("send_message", MESSAGE), ("get_order", ORDER))
        assert (story.row.status, story.row.due_at) == ("running", story.row.lease_until)
        story.start(2)
        story.end(ordinal=2).park()
        assert (story.row.status, story.row.due_at) == ("waiting_approval", None)
        put(story, due_at=0)
        story.claim().stop(Stop("give_up"))
        assert (story.row.status, story.row.due_at, story.row.lease_until) == ("needs_human", None, None)
