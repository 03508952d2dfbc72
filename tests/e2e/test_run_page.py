"""The page of a run in a browser: it follows, it tells how much is new, and it never takes a reader's place away."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Tab
from tests.stack import ROOT, Stack

LONG = "from tests.longrun import long_run; print('run', long_run({calls}, notes=2).pk)"
# Facts of a run that is at rest, by the journal's own append, as a worker would bring them.
MORE = "from tests.longrun import prolong; from runs.models import Run; prolong(Run.objects.get(pk={0}), {1}, {2})"


def grown(stack: Stack, calls: int) -> int:
    """A run that has made so many calls and stands between two turns; its id."""
    said = stack.manage("shell", "-v0", "-c", LONG.format(calls=calls), PYTHONPATH=str(ROOT)).stdout
    return int(re.findall(r"run (\d+)", said)[-1])


def grow(stack: Stack, run: int, calls: int, each: int = 4) -> None:
    """It makes more calls, `each` an append."""
    stack.manage("shell", "-v0", "-c", MORE.format(run, calls, each), PYTHONPATH=str(ROOT))


@pytest.fixture(scope="module")
def run(stack: Stack) -> int:
    return grown(stack, 240)


def watch(tab: Callable[..., Tab], stack: Stack, path: str, **options: Any) -> Page:
    page = tab("auditor", **options).page
    page.goto(stack.url + path)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    return page


def cards(page: Page) -> int:
    return page.locator("#timeline > li").count()


def test_a_reader_at_the_end_follows_and_another_is_told_how_much_is_new(
    tab: Callable[..., Tab], stack: Stack, run: int
) -> None:
    page = watch(tab, stack, f"/runs/{run}")
    page.evaluate("window.sameDocument = true; scrollTo(0, 0)")
    before = page.evaluate("scrollY")
    grow(stack, run, 8)
    expect(page.locator("#more-new")).to_contain_text("10 new")  # two turns of four calls
    assert page.evaluate("scrollY") == before
    page.locator("#more-new").click()
    expect(page.locator("#more-new")).to_be_hidden()
    newest = page.locator("#timeline > li").last
    expect(newest).to_be_in_viewport()
    was = newest.get_attribute("id")
    grow(stack, run, 4)
    expect(page.locator("#timeline > li").last).not_to_have_id(str(was))
    expect(page.locator("#timeline > li").last).to_be_in_viewport()
    expect(page.locator("#more-new")).to_be_hidden()
    assert page.evaluate("window.sameDocument") is True


def test_six_hundred_new_calls_leave_fewer_than_four_hundred_cards_and_a_way_back_to_the_rest(
    tab: Callable[..., Tab], stack: Stack, run: int
) -> None:
    page = watch(tab, stack, f"/runs/{run}")
    first = page.locator("#timeline > li").first.get_attribute("id")
    grow(stack, run, 600, 40)
    expect(page.locator("#timeline > li").last.locator(".seq")).to_have_text(
        re.compile(str(last_card(stack, run))), timeout=20_000
    )
    assert cards(page) < 400
    assert page.locator("#timeline > li").first.get_attribute("id") != first
    oldest = int(page.locator("#timeline > li .seq").first.text_content() or "")
    page.locator("#older").click()
    expect(page.locator("#window")).to_be_visible()
    assert int(page.locator("#window > li .seq").last.text_content() or "") < oldest


def last_card(stack: Stack, run: int) -> int:
    """The number of the first event of a run's newest card."""
    sql = "SELECT MAX(seq) AS n FROM runs_event WHERE run_id = %s AND kind = 'CallJudged'"
    return int(stack.sql(sql, (run,))[0]["n"])


def test_a_hundred_updates_move_neither_caret_selection_scroll_nor_an_open_card(
    tab: Callable[..., Tab], stack: Stack, run: int
) -> None:
    page = watch(tab, stack, f"/runs/{run}")
    card = page.locator("#timeline > li.call").first
    card.locator("summary").click()
    note = page.get_by_label(re.compile("^Note"))
    note.fill("Half a thought")
    note.evaluate("each => each.setSelectionRange(2, 6)")
    place = "[scrollY, document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    before = page.evaluate(place)
    grow(stack, run, 100, 1)
    expect(page.locator("#timeline > li").last.locator(".seq")).to_have_text(
        re.compile(str(last_card(stack, run))), timeout=20_000
    )
    assert page.evaluate(place) == before
    expect(card.locator("details")).to_have_attribute("open", "")
    expect(note).to_have_value("Half a thought")


def test_a_filter_a_permalink_and_the_next_error_are_addresses(tab: Callable[..., Tab], stack: Stack, run: int) -> None:
    page = tab("auditor").page
    page.goto(f"{stack.url}/runs/{run}")
    page.get_by_role("link", name="Next error").click()
    expect(page.locator("li:target")).to_be_in_viewport()
    first = page.url
    page.get_by_role("link", name="Next error").click()
    expect(page).not_to_have_url(first)
    page.get_by_text("Filter", exact=True).first.click()
    page.get_by_role("searchbox", name="Text").last.fill("Seen after 120")
    page.get_by_role("search", name="Filter the timeline").get_by_role("button", name="Filter").click()
    expect(page.locator("#window > li")).to_have_count(1)
    page.get_by_role("link", name=re.compile("^Text: Seen after")).click()
    page.locator("#timeline > li .seq").first.click()
    expect(page.locator("li:target")).to_be_in_viewport()
    page.reload()
    expect(page.locator("li:target")).to_be_in_viewport()


def test_the_waterfall_leads_to_the_card(tab: Callable[..., Tab], stack: Stack, run: int) -> None:
    page = tab("auditor").page
    page.goto(f"{stack.url}/runs/{run}?view=waterfall")
    page.get_by_role("link", name=re.compile("^Turn ")).first.click()
    expect(page.locator("li.turn:target")).to_be_in_viewport()


def test_stored_data_comes_when_it_is_wanted(tab: Callable[..., Tab], stack: Stack, run: int) -> None:
    page = tab("auditor").page
    page.goto(f"{stack.url}/runs/{run}")
    card = page.locator("#timeline > li.call").last
    card.locator("summary").click()
    card.get_by_role("link", name="stored data").last.click()
    expect(card.get_by_text("Stored data: shown as text, never followed")).to_be_visible()
    expect(page).to_have_url(f"{stack.url}/runs/{run}")
