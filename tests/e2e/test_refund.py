"""The refund story through two browsers: live, by the right person, once."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.e2e.conftest import Tab
from tests.stack import Stack


def test_an_operator_starts_a_refund_and_watches_live_how_a_reviewer_approves_it(
    tab: Callable[..., Tab], stack: Stack
) -> None:
    mine = tab("operator").page
    mine.get_by_role("link", name="Start a run").first.click()
    mine.get_by_role("link", name=re.compile("^Begin with its example ?: Refund$")).click()
    mine.get_by_label("Order number").fill("O-1042")
    mine.get_by_label("Amount in EUR").fill("12.34")
    mine.get_by_role("button", name="Start Refund").click()
    expect(mine.locator("#run-status")).to_contain_text("Waits for approval")
    expect(mine.locator("#live")).to_have_text("Live")
    mine.evaluate("window.sameDocument = true")
    mine.get_by_role("link", name="Look and decide").click()
    expect(mine.get_by_text("You started this run, so another operator decides.")).to_be_visible()
    expect(mine.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)
    mine.go_back()
    expect(mine.locator("#live")).to_have_text("Live")
    mine.evaluate("window.sameDocument = true")

    theirs = tab("reviewer").page
    row = theirs.get_by_role("link", name=re.compile("^Refund €12.34 on order O-1042")).first
    expect(row).to_contain_text("High")
    row.click()
    expect(theirs.get_by_role("table").first).to_contain_text("12.34")
    expect(theirs.get_by_text("exactly these bytes run")).to_be_visible()
    theirs.get_by_label("High risk: type refund_order").fill("refund_order")
    theirs.get_by_role("button", name="Approve: Refund €12.34 on order O-1042").click()
    expect(theirs.get_by_text("Approved. It runs exactly as it was shown.")).to_be_visible()

    expect(mine.locator("#run-status")).to_contain_text("Succeeded")
    expect(mine.locator("#run-head")).to_contain_text("12.34 EUR of order O-1042 were paid back.")
    expect(mine.locator("#timeline")).to_contain_text("The run succeeded")
    assert mine.evaluate("window.sameDocument") is True  # live: no reload
    ids = mine.locator("#timeline > li").evaluate_all("rows => rows.map(row => row.id)")
    assert len(ids) == len(set(ids))
    run = mine.url.rpartition("/")[2]
    keys = [
        row["key"] for row in stack.sql("SELECT key FROM runs_call WHERE run_id = %s AND tool = 'refund_order'", (run,))
    ]
    assert [stack.ledger(key=key)["total"] for key in keys] == [1]
