"""The live line: a server that dies and comes back costs the reader nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import httpx2
from playwright.sync_api import expect

from tests.e2e.conftest import Tab
from tests.stack import Stack, until


def answers(stack: Stack) -> bool:
    with suppress(httpx2.HTTPError):
        return stack.healthz().status_code == 200
    return False


def test_a_killed_web_process_costs_no_card_no_typed_word_and_no_reload(tab: Callable[..., Tab], stack: Stack) -> None:
    form = {"goal": "Wait for me.", "request_key": "live", "input_order_id": "O-1042", "fact_customer": "C-7"}
    place = stack.signed_in("operator").post("/runs/new/asker", form).headers["Location"]
    mine = tab("auditor")
    page = mine.page
    page.goto(stack.url + place)
    expect(page.locator("#run-status")).to_contain_text("Waits for an answer")
    page.evaluate("window.sameDocument = true")
    page.get_by_label(re.compile("^Note")).fill("Half a thought")
    page.locator("#card-call-1-1 summary").click()
    expect(page.locator("#live")).to_have_text("Live")
    old = stack.kill("web")
    expect(page.locator("#live")).to_have_text("Reconnecting")
    stack.reborn("web", old)
    until(lambda: answers(stack), what="the web process answers again")
    question = stack.sql("SELECT id FROM runs_question WHERE run_id = %s", (int(place[6:]),))[0]["id"]
    answered = stack.signed_in("operator").post(f"/questions/{question}/answer", {"answer_colour": "white"})
    assert answered.status_code == 302

    expect(page.locator("#live")).to_have_text("Live", timeout=20_000)
    expect(page.locator("#run-status")).to_contain_text("Succeeded", timeout=20_000)
    expect(page.locator("#timeline")).to_contain_text("The customer wants white.")
    ids = page.locator("#timeline > li").evaluate_all("rows => rows.map(row => row.id)")
    page.reload()
    assert ids == page.locator("#timeline > li").evaluate_all("rows => rows.map(row => row.id)")
    # A browser says so when a server is away; everything else it says is a defect.
    mine.complaints[:] = [said for said in mine.complaints if "WebSocket connection" not in said]


def test_open_cards_and_typed_words_survive_news(tab: Callable[..., Tab], stack: Stack) -> None:
    form = {"goal": "Keep my place.", "request_key": "keep", "input_order_id": "O-1042", "fact_customer": "C-7"}
    place = stack.signed_in("operator").post("/runs/new/asker", form).headers["Location"]
    page = tab("auditor").page
    page.goto(stack.url + place)
    expect(page.locator("#run-status")).to_contain_text("Waits for an answer")
    expect(page.locator("#live")).to_have_text("Live")
    page.locator("#card-call-1-1 summary").click()
    note = page.get_by_label(re.compile("^Note"))
    note.fill("Half a thought")
    question = stack.sql("SELECT id FROM runs_question WHERE run_id = %s", (int(place[6:]),))[0]["id"]
    stack.signed_in("operator").post(f"/questions/{question}/answer", {"answer_colour": "black"})
    expect(page.locator("#run-status")).to_contain_text("Succeeded")
    expect(page.locator("#card-call-1-1 details")).to_have_attribute("open", "")
    expect(page.locator("#card-call-1-1")).to_contain_text("answered")
    expect(note).to_have_value("Half a thought")
    expect(note).to_be_focused()
