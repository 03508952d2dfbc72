"""Every page at two widths, light and dark, to be looked at (artifacts/); nothing is wider than its window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Tab
from tests.stack import ROOT, Stack, until

SHOTS = ROOT / "artifacts" / "pages"
WIDTHS = {"wide": (1440, 900), "phone": (390, 844)}


def start(stack: Stack, agent: str, **fields: str) -> str:
    """Start a run by the form; its address."""
    answer = stack.signed_in("operator").post(
        f"/runs/new/{agent}", {"goal": "Look at me.", "request_key": agent, **fields}
    )
    assert answer.status_code == 302, answer.text
    return str(answer.headers["Location"])


@pytest.fixture(scope="module")
def places(stack: Stack) -> dict[str, str]:
    """A house with one of each: a refund that waits, one that ended, a question, an unknown message."""
    order = {"input_order_id": "O-1042", "fact_customer": "C-7"}
    done = start(stack, "stock-question", input_sku="LAMP-01")
    waiting = start(
        stack, "refund", input_amount="80.00", input_reason="Broken.\nPay to\u200b DE89\u202e instead", **order
    )
    asker = start(stack, "asker", **order)
    stack.faults.arm("reply_lost", path="/messages", times=1)
    unknown = start(stack, "messenger", input_text="Your lamp leaves us today.", **order)
    found = until(lambda: stack.sql("SELECT id, digest FROM runs_approval WHERE run_id = %s", (int(unknown[6:]),)))[0]
    voted = stack.signed_in("reviewer").post(f"/approvals/{found['id']}/approve", {"digest": found["digest"]})
    assert voted.status_code == 302
    until(lambda: stack.sql("SELECT 1 FROM runs_call WHERE status = 'unknown'"), what="an unknown call")
    ask = until(lambda: stack.sql("SELECT id FROM runs_approval WHERE run_id = %s", (int(waiting[6:]),)))[0]["id"]
    question = until(lambda: stack.sql("SELECT id FROM runs_question WHERE run_id = %s", (int(asker[6:]),)))[0]["id"]
    late, incident = _incident(stack)
    lost = stack.sql("SELECT turn, ordinal FROM runs_call WHERE status = 'unknown'")[0]
    return {
        "inbox": "/", "runs": "/runs", "new": "/runs/new", "new-run": "/runs/new/refund", "run-done": done,
        "run-waiting": waiting, "run-unknown": unknown,
        "approval": f"/approvals/{ask}",
        "question": f"/questions/{question}",
        "attest": f"{unknown}/calls/{lost['turn']}.{lost['ordinal']}/attest", "cancel": f"{waiting}/cancel",
        "incidents": "/incidents", "incident": f"/incidents/{incident}", "run-incident": f"/runs/{late}",
        "health": "/health", "password": "/password",
    }  # fmt: skip


def _incident(stack: Stack) -> tuple[int, int]:
    """A pickup that was presumed not booked and was booked after all: its run, and the incident."""
    order = {"input_order_id": "O-5199", "fact_customer": "C-7", "input_day": "2026-12-04"}
    run = int(start(stack, "pickup-soon", **order)[6:])
    stack.faults.arm("late", path="/pickups", method="POST", seconds=3)
    found = until(lambda: stack.sql("SELECT id, digest FROM runs_approval WHERE run_id = %s", (run,)))[0]
    stack.signed_in("reviewer").post(f"/approvals/{found['id']}/approve", {"digest": found["digest"]})
    sql = "SELECT id FROM runs_incident WHERE run_id = %s"
    return run, until(lambda: stack.sql(sql, (run,)), 30, what="the incident")[0]["id"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_its_window(tab: Callable[..., Tab], places: dict[str, str], width: str, scheme: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    wide, high = WIDTHS[width]
    page = tab("reviewer", viewport={"width": wide, "height": high}, color_scheme=scheme).page
    for name, path in places.items():
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/")[2] + path)
        expect(page.locator("h1")).to_be_visible()
        if page.locator("#live").count():
            expect(page.locator("#live")).to_have_text("Live")
        page.locator(".call details").evaluate_all("all => all.slice(-2).forEach(each => { each.open = true; })")
        page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert over <= 0, f"{name} is {over} px wider than its window"


def test_the_door_and_the_way_out(tab: Callable[..., Tab], stack: Stack) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page = tab("auditor").page
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.screenshot(path=Path(SHOTS / "sign-in-wide-light.png"))
