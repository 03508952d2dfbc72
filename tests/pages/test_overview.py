"""The overview: its numbers are those that one counts by hand, and each leads to what is behind it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from runs.engine.limits import SECOND
from runs.journal.lease import now
from runs.models import Approval, Decision, Run
from runs.queries import overview as queries
from runs.queries.charts import columns, lines, top_of
from runs.queries.health import health
from tests.pages.story import Story, browser, decide

DAY = 86_400 * SECOND


@pytest.fixture
def told(seeded: None, service: Any) -> list[Story]:
    """Eight runs: four refunds done, one edited, one refused, one that waits, one of twenty days ago."""
    stories = [Story().go() for _n in range(6)]
    for story in stories[:3]:
        decide(story, "approve")
        story.go()
    edit = {
        "arg_order_id": "O-1042",
        "arg_amount": "7.00",
        "arg_currency": "EUR",
        "arg_reason": "Less.",
        "mode": "fields",
    }
    decide(stories[3], "edit", **edit)
    decide(stories[4], "reject", why="No.", then="stop")
    for story in stories[3:5]:
        story.go()
    old = Story("stock-question", inputs={"sku": "LAMP-01"}).go()
    Run.objects.filter(pk=old.run.pk).update(started_at=now() - 20 * DAY)
    return [*stories, old]


def by_hand(stories: list[Story], status: str) -> int:
    return Run.objects.filter(pk__in=[story.run.pk for story in stories], status=status).count()


def test_its_numbers_equal_those_counted_by_hand(told: list[Story]) -> None:
    week = browser("auditor").get("/overview?range=7d").context["found"]
    recent = told[:-1]
    assert week.runs == 6 and sum(sum(bucket.values()) for bucket in week.counts) == 6
    assert week.totals["succeeded"] == by_hand(recent, "succeeded") == 4
    assert week.totals["cancelled"] == by_hand(recent, "cancelled") == 1
    assert week.totals["going"] == by_hand(recent, "waiting_approval") == 1
    assert (week.decided.approved, week.decided.edited, week.decided.rejected) == (3, 1, 1)
    assert week.rate == 80 and week.decided.as_proposed == 60
    took = sorted((d.at - d.approval.created_at) // 1000 for d in Decision.objects.select_related("approval"))
    assert (week.latency.n, week.latency.p50, week.latency.p95) == (5, took[2], took[4])
    assert week.tokens == sum(Run.objects.get(pk=story.run.pk).picture.n.tokens for story in recent) > 0
    assert week.untold == 0
    month = browser("auditor").get("/overview?range=30d").context["found"]
    assert month.runs == 7 and month.totals["succeeded"] == 5


def test_what_models_did_not_tell_stays_unknown_and_cost_too(told: list[Story]) -> None:
    silent = Run.objects.get(pk=told[0].run.pk)
    Run.objects.filter(pk=silent.pk).update(state=re.sub(r'"tok":\d+,?', "", silent.state))
    Run.objects.filter(pk=told[1].run.pk).update(state="not even JSON")
    page = browser("auditor").get("/overview")
    assert page.context["found"].untold == 1 and "not told by 1 run;" in page.content.decode()
    assert "no model was asked that anybody bills" in page.content.decode()


def test_a_damaged_state_takes_no_other_number_away(told: list[Story]) -> None:
    Run.objects.filter(pk=told[0].run.pk).update(state='{"stop": ')
    assert browser("auditor").get("/overview").context["found"].runs == 6


def test_why_runs_stand_still_is_counted_by_reason(seeded: None, service: Any) -> None:
    stopped = Story("quitter").go()
    assert stopped.run.status == "needs_human"
    page = browser("auditor").get("/overview")
    assert page.context["found"].stops == [("give_up", 1)] and "agent gave up" in page.content.decode()


def test_each_bar_leads_to_the_runs_behind_it(told: list[Story]) -> None:
    for span in ("24h", "7d"):
        page = browser("auditor").get(f"/overview?range={span}")
        total = 0
        for row in page.context["outcome_rows"]:
            for n, address in row[2]:
                if n and address:
                    assert len(browser("auditor").get(address).context["list"].rows) == n, address
                    total += n
        assert total == 5
        assert f'href="{page.context["outcome_rows"][0][1]}"' in page.content.decode().replace("&amp;", "&")


def test_it_says_first_what_waits_for_whom(told: list[Story]) -> None:
    assert browser("reviewer").get("/overview").context["needs"].mine == 1
    mine = browser("operator").get("/overview")  # started all of them
    assert mine.context["needs"].mine == 0 and mine.context["needs"].first == []
    assert "Nothing waits for you." in mine.content.decode()
    Approval.objects.filter(status="pending").update(expires_at=now() + 245 * SECOND)
    assert "The first expires in 4:0" in browser("reviewer").get("/overview").content.decode()
    assert "1 thing waits for an operator." in browser("auditor").get("/overview").content.decode()


def test_an_unknown_range_is_a_week_and_an_empty_house_is_greeted(seeded: None) -> None:
    page = browser("operator").get("/overview?range=century")
    assert page.context["found"].range.name == "7d" and "Start your first run in three steps" in page.content.decode()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/St_Johns"])
def test_days_are_those_of_the_viewer(zone: str) -> None:
    from django.utils import timezone

    clock = time.time_ns() // 1000
    with timezone.override(zone):
        week = queries.Range.of("7d", clock)
        begins = [week.moment(n).strftime("%H:%M") for n in range(7)]
    assert begins == ["12:00"] * 7 and week.since <= clock < week.since + week.span


def test_charts_stay_in_their_frame() -> None:
    assert [top_of(n) for n in (0, 1, 3, 7, 11, 29, 81, 101)] == [2, 2, 3, 8, 20, 30, 100, 200]
    rows = [(str(n), "", "", [n, 0, 1, 0, 0]) for n in range(30)]
    drawn = columns(queries.SERIES, rows, 5)
    for column in drawn.columns:
        assert all(
            bar.y >= 22 and bar.y + bar.height <= 150.1 and column.x + column.width <= 400 for bar in column.bars
        )
    path = lines(["1", "2", "3"], [("accent", False, "typical", [(1, "a"), None, (3, "c")])], 1, str).paths[0]
    assert path.pieces == [] and len(path.points) == 2, "nothing is drawn across what is not known"


def test_health_says_what_is_bad_and_what_to_do(seeded: None) -> None:
    found = health()
    bad = {part.name: part.todo for part in found.bad}
    assert "Start one: celery" in bad["Workers"] and "manage.py sweep" in bad["Sweeper"]
    page = browser("auditor").get("/health").content.decode()
    assert "not built in yet" in page and "parts need a look" in page and "Django" in page
