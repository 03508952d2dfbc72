"""The line between page and server: when it breaks the page says so, keeps what was typed, and catches up by itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.chaos.proxy import Link
from tests.e2e.conftest import Tab
from tests.e2e.house import ORDER, asked, decide, number, signed_in, start
from tests.stack import Stack, free_port, until

HIDDEN = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def waiting_run(stack: Stack) -> int:
    """A run that waits for an approval; its id."""
    run = number(start(stack, "messenger", f"Wait, {time.monotonic_ns()}.", input_text="On its way.", **ORDER))
    asked(stack, run)
    return run


@pytest.fixture
def waiting(stack: Stack) -> Iterator[int]:
    """As `waiting_run`; nothing of it stays for the next test."""
    run = waiting_run(stack)
    yield run
    if stack.sql("SELECT 1 FROM runs_approval WHERE run_id = %s AND status = 'pending'", (run,)):
        decide(stack, run, "reject", why="Not needed.", then="stop")


@dataclass
class Far:
    """An installation behind a way that can be cut: browsers know it by the address of the way."""

    stack: Stack
    link: Link
    run: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.link.port}"

    @property
    def path(self) -> str:
        return f"{self.url}/runs/{self.run}"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    port = free_port()
    link = Link(port)
    made = Stack(tmp_path_factory.mktemp("far"), PORT=str(port), AGENTOPS_ORIGIN=f"http://127.0.0.1:{link.port}")
    made.port, made.url = port, f"http://127.0.0.1:{port}"
    try:
        yield Far(made.start(), link, waiting_run(made))
    finally:
        made.close()
        link.close()


def from_afar(browser: Browser, far: Far) -> Page:
    """A signed-in auditor who looks at the run by that way."""
    page = Tab(browser.new_context(), far.url, "auditor").sign_in().page
    page.wait_for_url("**/")
    return page


def live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def note(stack: Stack, run: int, text: str) -> None:
    answer = signed_in(stack, "operator").post(f"/runs/{run}/note", {"text": text})
    assert answer.status_code == 302, answer.text[:300]


def quiet(mine: Tab) -> None:
    """A browser says so when a server is away; everything else it says is a defect."""
    away = ("WebSocket connection", "ERR_INTERNET_DISCONNECTED")
    mine.complaints[:] = [said for said in mine.complaints if not any(word in said for word in away)]


def test_offline_switches_deciding_off_with_the_reason_and_back_online_catches_up(
    tab: Callable[..., Tab], stack: Stack, waiting: int
) -> None:
    mine = tab("reviewer")
    page = mine.page
    page.goto(f"{stack.url}/approvals/{asked(stack, waiting)['id']}")
    live(page)
    approve = page.get_by_role("button", name=re.compile("^Approve:"))
    expect(approve).to_be_enabled()
    mine.context.set_offline(True)
    expect(page.get_by_text("You are offline.")).to_be_visible()
    expect(approve).to_be_disabled()
    mine.context.set_offline(False)
    live(page)
    expect(approve).to_be_enabled()
    approve.click()
    expect(page.get_by_text("Approved. It runs exactly as it was shown.")).to_be_visible()
    quiet(mine)


def test_after_a_laptop_slept_a_socket_that_only_looks_open_is_replaced_and_nothing_is_missing(
    browser: Browser, far: Far
) -> None:
    page = from_afar(browser, far)
    page.clock.install()
    page.goto(far.path)
    live(page)
    far.link.cut("hole")  # nobody closes anything: what is sent is just gone
    note(far.stack, far.run, "Said while you slept.")
    until(lambda: far.link.hurt, what="the hole swallows what the server says")
    time.sleep(3)  # a sign of life may have been swallowed first; the news follows at once
    far.link.mode = "pass"
    assert page.get_by_text("Said while you slept.").count() == 0
    page.clock.fast_forward(60 * 60 * 1000)
    expect(page.locator("#timeline")).to_contain_text("Said while you slept.")
    live(page)
    page.context.close()


def test_a_tab_from_the_background_shows_what_happened_meanwhile(browser: Browser, far: Far) -> None:
    page = from_afar(browser, far)
    page.goto(far.path)
    live(page)
    page.evaluate(HIDDEN, True)
    far.link.cut("reset")
    note(far.stack, far.run, "Said behind your back.")
    far.link.heal()
    page.evaluate(HIDDEN, False)
    expect(page.locator("#timeline")).to_contain_text("Said behind your back.")
    live(page)
    page.context.close()


def test_signing_out_in_another_tab_ends_this_one_within_five_seconds(
    tab: Callable[..., Tab], stack: Stack, waiting: int
) -> None:
    mine = tab("auditor")
    page = mine.page
    page.goto(f"{stack.url}/runs/{waiting}")
    live(page)
    page.get_by_label(re.compile("^Note")).fill("Half a thought")
    other = mine.context.new_page()
    other.goto(stack.url)
    other.locator(".avatar").last.click()
    began = time.monotonic()
    other.get_by_role("button", name="Sign out").click()
    expect(page.locator("#live")).to_have_attribute("data-state", "ended", timeout=7_000)
    assert time.monotonic() - began < 6.5  # the poll of 5 s, and what a busy machine adds
    expect(page.get_by_text("This page is no longer yours.")).to_be_visible()
    expect(page.get_by_label(re.compile("^Note"))).to_have_value("Half a thought")
    expect(page.get_by_role("button", name="Leave the note")).to_be_disabled()
    quiet(mine)


def test_theme_and_language_are_a_click_away_and_stay(tab: Callable[..., Tab], stack: Stack) -> None:
    page = tab("admin").page
    page.goto(f"{stack.url}/overview")
    page.locator(".avatar").last.click()
    page.locator("button[name=theme][value=dark]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("h1")).to_contain_text("等")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator(".avatar").last.click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_the_keys_are_listed_and_lead_where_they_say(tab: Callable[..., Tab], stack: Stack) -> None:
    page = tab("auditor").page
    page.goto(f"{stack.url}/overview")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(f"{stack.url}/runs")
    page.keyboard.press("/")
    expect(page.locator("[type=search]:focus")).to_have_count(1)
    page.keyboard.type("?")
    expect(page.locator("#keys")).to_be_hidden()  # letters that are typed are text


def test_many_runs_are_paused_with_progress_that_is_seen(tab: Callable[..., Tab], stack: Stack) -> None:
    runs = [number(start(stack, "messenger", f"Many {n}.", input_text="On its way.", **ORDER)) for n in range(3)]
    for run in runs:
        asked(stack, run)
    page = tab("operator").page
    page.goto(f"{stack.url}/runs?q=Many")
    for run in runs:
        page.get_by_label(f"Choose R-{run}", exact=True).check()
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("button", name=re.compile("^Pause 3 runs")).click()
    expect(page.locator("progress")).to_have_attribute("value", "3", timeout=15_000)
    states = stack.sql("SELECT status FROM runs_run WHERE id IN (%s, %s, %s)", tuple(runs))
    assert {row["status"] for row in states} == {"paused"}
    for run in runs:
        signed_in(stack, "operator").post(f"/runs/{run}/cancel", {"why": "Done with it."})
