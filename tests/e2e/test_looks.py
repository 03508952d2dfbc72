"""Every page at two widths, light and dark, in both languages: to be looked at (artifacts/), and clean by the rules.

Clean is: axe finds nothing, nothing is wider than its window, every control can be hit, the console is silent (where
a browser reports what the CSP refused).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Tab
from tests.e2e.house import furnished
from tests.pages.table import ROUTES
from tests.stack import ROOT, Stack

SHOTS = ROOT / "artifacts" / "pages"
WIDTHS = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
LOOKS = {
    "en": [("wide", "light"), ("phone", "light"), ("wide", "dark"), ("phone", "dark")],
    "zh-CN": [("wide", "dark"), ("phone", "light")],
}
# The first look of each language is held against all of axe; where only colours, width and words differ, against the
# rules that these can break.
AGAIN = ["color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable"]
CONTROLS = "button, .button, .input, select, summary.button"
# Runs in the page: on a phone a control is 44 px high, a small one 36 (guide.md); elsewhere axe's rule of 24 px holds.
SMALL = """all => all.filter(each => {
  const high = each.getBoundingClientRect().height;
  if (!high || !each.checkVisibility({visibilityProperty: true}) || each.closest(".visually-hidden")) return false;
  return Math.round(high) < (each.dataset.size === "small" ? 36 : 44);
}).map(each => `${Math.round(each.getBoundingClientRect().height)} px: ${each.outerHTML.slice(0, 160)}`)"""


@pytest.fixture(scope="session")  # tests that need no browser come apart from those that do
def places(stack: Stack) -> dict[str, str]:
    SHOTS.mkdir(parents=True, exist_ok=True)
    return furnished(stack)


FILES = {"runs-csv", "runs-jsonl", "run-csv", "run-jsonl"}  # handed out, not shown


def test_every_route_with_a_page_is_looked_at(places: dict[str, str]) -> None:
    pages = {name.partition(":")[0] for name, (get, _) in ROUTES.items() if get and 200 in get.values()} - FILES
    assert pages - {name.partition(":")[0] for name in places} == set()


def complaints(page: Page, where: str, thumb: bool, rules: list[str]) -> Iterator[str]:
    """What is wrong with the page as it stands now; `rules` of axe, or all where there are none."""
    over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if over > 0:
        yield f"{where} is {over} px wider than its window"
    for control in page.locator(CONTROLS).evaluate_all(SMALL) if thumb else ():
        yield f"{where}: too small for a thumb: {control}"
    for found in axe(page, rules):
        for node in found["nodes"]:
            yield f"{where}: {found['id']} ({found['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"


def axe(page: Page, rules: list[str]) -> list[dict[str, Any]]:
    """Violations by axe-core, injected past the CSP by the browser's own debugger: nothing is served to the page."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {"rules": {"target-size": {"enabled": True}}}
    found = page.evaluate("options => axe.run(document, options)", options)
    assert len(found["passes"]) > (0 if rules else 10)  # it really looked
    return list(found["violations"])


@pytest.mark.parametrize("language", LOOKS)
def test_every_page_is_clean(tab: Callable[..., Tab], places: dict[str, str], stack: Stack, language: str) -> None:
    mine = tab("reviewer", locale=language, viewport=WIDTHS["wide"], reduced_motion="reduce")
    page, found = mine.page, []
    for name, path in places.items():
        if name == "sign-in":
            mine.context.clear_cookies()
        page.goto(stack.url + path)
        expect(page.locator("h1").first).to_be_visible()
        if page.locator("#live").count():
            expect(page.locator("#live")).to_have_attribute("data-state", "live")
        page.locator(".call details").evaluate_all("all => all.slice(-2).forEach(each => { each.open = true; })")
        for number, (width, scheme) in enumerate(LOOKS[language]):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(WIDTHS[width])  # type: ignore[arg-type]
            shot = f"{name.replace(':', '-')}-{width}-{scheme}-{language[:2]}.png"
            page.screenshot(path=SHOTS / shot, full_page=True)
            found += complaints(page, f"{name} {width} {scheme} {language}", width == "phone", AGAIN if number else [])
    mine.complaints[:] = [said for said in mine.complaints if "404 (Not Found)" not in said]  # of the absent page
    kept = {said.partition(": ")[2]: said for said in reversed(found)}  # each once, with the first page that shows it
    assert not kept, "\n".join(sorted(kept.values()))
