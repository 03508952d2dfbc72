"""The inbox in a browser: decided by keyboard, by thumb, by two people at once, and without a script."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Tab
from tests.e2e.house import ORDER, asked, decide, number, start
from tests.stack import PASSWORD, Stack, until

MEANT = 450  # ms: a key sooner than 0.4 s after an item came into view was meant for the one before it


def message(stack: Stack, goal: str) -> int:
    """A run that waits for somebody to approve a message; its id."""
    run = number(start(stack, "messenger", goal, input_text="Your lamp leaves us today.", **ORDER))
    asked(stack, run)
    return run


def statuses(stack: Stack, runs: list[int]) -> list[str]:
    sql = "SELECT status FROM runs_approval WHERE run_id = %s"
    return [stack.sql(sql, (run,))[0]["status"] for run in runs]


def empty(stack: Stack) -> None:
    """Nothing waits that an earlier test left."""
    for row in stack.sql("SELECT run_id FROM runs_approval WHERE status = 'pending'"):
        decide(stack, row["run_id"], "reject", why="Not needed.", then="stop")


@pytest.fixture(autouse=True)
def cleared(stack: Stack) -> None:
    empty(stack)


def test_ten_approvals_by_keyboard_alone(tab: Callable[..., Tab], stack: Stack) -> None:
    runs = [message(stack, f"Tell customer {n}.") for n in range(10)]
    page = tab("reviewer").page
    expect(page.locator("#list .row")).to_have_count(10)
    expect(page.locator("#live")).to_have_attribute("data-state", "live")  # so the keys are heard
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for left in range(10, 0, -1):
        expect(page.locator("#list .row:not([data-done])")).to_have_count(left)
        item = page.locator("#detail").get_attribute("data-item") or ""
        if left == 10:
            expect(page.locator("#detail[data-item^=approval]")).to_be_visible()
            item = page.locator("#detail").get_attribute("data-item") or ""
        page.wait_for_timeout(MEANT)
        page.keyboard.press("a")
        expect(page.locator("#detail")).not_to_have_attribute("data-item", item)
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    until(lambda: set(statuses(stack, runs)) == {"consumed"}, 20, what="all ten run")


def test_three_taps_approve_what_is_of_medium_risk(tab: Callable[..., Tab], stack: Stack) -> None:
    run = message(stack, "Tap, tap, tap.")
    page = tab("reviewer", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page
    page.goto(f"{stack.url}/overview")
    page.locator(".nav a[data-key=i]").tap()
    page.locator("#list .row").first.tap()
    expect(page).to_have_url(re.compile("/approvals/"))
    page.get_by_role("button", name=re.compile("^Approve:")).tap()
    until(lambda: statuses(stack, [run]) in (["consumed"], ["approved"]), what="the approval")


def test_of_two_people_at_one_item_the_second_is_told_who_won_and_keeps_the_words(
    tab: Callable[..., Tab], stack: Stack
) -> None:
    run = message(stack, "Two look at it.")
    place = f"{stack.url}/approvals/{asked(stack, run)['id']}"
    loser = tab("reviewer")
    mine = loser.page
    mine.goto(place)
    mine.locator("summary", has_text="Reject").click()
    why = mine.locator("#reject textarea")
    why.fill("Wrong customer, I think.")
    theirs = tab("operator", viewport={"width": 1200, "height": 800})
    decided = theirs.page
    decided.goto(place)
    decided.get_by_role("button", name=re.compile("^Approve:")).click()
    expect(mine.get_by_text("This happened while you were looking.")).to_be_visible()
    expect(why).to_have_value("Wrong customer, I think.")
    mine.get_by_role("button", name="Reject it").click()
    expect(mine.get_by_text("operator has already approved this")).to_be_visible()
    expect(mine.get_by_text("Wrong customer, I think.")).to_be_visible()
    loser.complaints[:] = [one for one in loser.complaints if "409 (Conflict)" not in one]


def test_a_form_that_is_being_filled_in_survives_what_happens_around_it(tab: Callable[..., Tab], stack: Stack) -> None:
    run = message(stack, "Fill me in.")
    page = tab("reviewer").page
    page.goto(f"{stack.url}/approvals/{asked(stack, run)['id']}")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    page.locator("summary", has_text="Reject").click()
    why = page.locator("#reject textarea")
    why.fill("Half a reason")
    why.evaluate("each => each.setSelectionRange(2, 5)")
    before = page.locator("#count-inbox").inner_text()
    for n in range(3):
        message(stack, f"Another {n}.")
    expect(page.locator("#count-inbox")).not_to_have_text(before)
    expect(why).to_be_focused()
    expect(why).to_have_value("Half a reason")
    assert why.evaluate("each => [each.selectionStart, each.selectionEnd]") == [2, 5]


def test_who_started_it_and_who_only_reads_are_told_why_they_cannot_decide(
    tab: Callable[..., Tab], stack: Stack
) -> None:
    run = number(start(stack, "refund", "Mine alone.", input_amount="5.00", input_reason="Broken.", **ORDER))
    place = f"{stack.url}/approvals/{asked(stack, run)['id']}"
    for who, why in (("operator", "You started this run"), ("auditor", "Operators decide; you are auditor")):
        page = tab(who).page
        page.goto(place)
        expect(page.get_by_text(why).first).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)


def test_reading_and_deciding_need_no_script(tab: Callable[..., Tab], stack: Stack) -> None:
    run = message(stack, "No script.")
    page = tab("reviewer", java_script_enabled=False).page
    page.goto(stack.url)
    page.locator("#list .row").first.click()
    page.get_by_role("button", name=re.compile("^Approve:")).click()
    until(lambda: statuses(stack, [run]) in (["consumed"], ["approved"]), what="the approval")
    page.goto(f"{stack.url}/runs/{run}")
    expect(page.locator("#timeline")).to_contain_text("reviewer approved it")


def test_a_stranger_and_an_absent_item_look_the_same(tab: Callable[..., Tab], stack: Stack) -> None:
    run = message(stack, "Not for strangers.")
    stack.manage(
        "shell", "-v0", "-c",
        "from django.contrib.auth.models import User; u, _ = User.objects.get_or_create(username='stranger');"
        f" u.set_password({PASSWORD!r}); u.save()",
    )  # fmt: skip
    assert run
    texts = []
    for who, path in (("stranger", f"/approvals/{asked(stack, run)['id']}"), ("reviewer", "/approvals/999999")):
        found = tab(who)
        answer = found.page.goto(stack.url + path)
        assert answer is not None and answer.status == 404
        texts.append(re.sub(r"req-\w+", "", said(found.page)))
        found.complaints[:] = [one for one in found.complaints if "404 (Not Found)" not in one]
    assert texts[0] == texts[1]


def said(page: Page) -> str:
    return page.locator("main").inner_text()
