"""What people see: the pages of a whole story, and nothing on them that our own policy forbids."""

from __future__ import annotations

import re

import pytest

from runs.models import Run
from tests.pages.story import Story, browser, counted, decide

INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle\s*=|\son[a-z]+\s*=|hx-on|javascript:", re.I)


def test_a_refund_is_read_decided_and_answered_without_a_script(asked: Story) -> None:
    page = browser("reviewer").get("/").content.decode()
    assert "Refund €80.00 on order O-1042 to the customer who placed it" in page
    assert decide(asked, "approve").status_code == 302
    asked.go()
    assert asked.run.status == "succeeded"
    page = browser("auditor").get(asked.page).content.decode()
    assert "80.00 EUR of order O-1042 were paid back." in page
    assert "reviewer" in page and "approved it" in page
    assert 'id="card-turn-1"' in page and 'id="card-call-1-1"' in page


def test_the_approval_page_shows_every_argument_with_type_size_and_digest(asked: Story) -> None:
    page = browser("reviewer").get(f"/approvals/{asked.approval.pk}").content.decode()
    for shown in ("order_id", "80.00", "EUR", "text, 5 bytes", asked.approval.digest, "key-protected", "High risk"):
        assert shown in page
    assert "high risk: another person decides" in page
    assert "Read order O-1042 of this customer" in page  # the last steps
    assert "unverified" in page


def test_the_starter_is_told_why_they_may_not_decide(asked: Story) -> None:
    mine = browser("operator")
    assert "You started this run, so another operator decides." in mine.get("/?view=others").content.decode()
    page = mine.get(f"/approvals/{asked.approval.pk}").content.decode()
    assert "You started this run, so another operator decides." in page
    assert "Approve:" not in page


@pytest.mark.parametrize("what", ["asked", "unknown", "questioned"])
def test_no_page_holds_inline_code_and_all_carry_the_policy(what: str, request: pytest.FixtureRequest) -> None:
    story: Story = request.getfixturevalue(what)
    paths = ["/", "/runs", "/runs/new", "/runs/new/refund", story.page, f"{story.page}/cancel", f"{story.page}/extend",
             "/health", "/password", "/nowhere", f"{story.page}/events/1"]  # fmt: skip
    if what == "asked":
        paths.append(f"/approvals/{story.approval.pk}")
    if what == "unknown":
        paths.append(story.place)
    if what == "questioned":
        paths.append(f"/questions/{story.question.pk}")
    for path in paths:
        answer = browser("reviewer").get(path)
        assert answer.status_code in (200, 404), path
        assert "script-src 'self'" in answer["Content-Security-Policy"], path
        assert not INLINE.search(answer.content.decode()), (path, INLINE.search(answer.content.decode()))
        assert answer["Cache-Control"] == "no-store", path


def test_hostile_text_is_shown_as_text(seeded: None, service: object) -> None:
    evil = "<img src=x onerror=alert(1)>{{ 7|add:7 }}</textarea><script>alert(1)</script>\u202e\u200b"
    story = Story(goal=evil, inputs={"order_id": "O-1042", "amount": "80.00", "reason": evil}).go()
    for path in ("/", "/runs", story.page, f"/approvals/{story.approval.pk}", f"{story.page}/events/1"):
        page = browser("reviewer").get(path).content.decode()
        assert "<img src=x" not in page and "<script>alert" not in page, path
        assert "\u202e" not in page.replace(f"{evil}", "") or "textarea" in page, path
    page = browser("reviewer").get(f"/approvals/{story.approval.pk}").content.decode()
    assert "⟦U+202E⟧" in page and "⟦U+200B⟧" in page
    assert "hidden characters stand in the arguments" in page


def test_an_unknown_effect_is_not_called_failed(unknown: Story) -> None:
    page = browser("auditor").get(unknown.page).content.decode()
    card = page[page.index(f'id="card-call-{unknown.call.turn}-{unknown.call.ordinal}"') :]
    assert "Unknown" in card[:3000] and "i-unknown" in card[:3000]
    assert "Unknown effects" in browser("reviewer").get("/").content.decode()
    sheet = browser("reviewer").get(unknown.place).content.decode()
    assert "It happened" in sheet and "It did not happen" in sheet and "Do it again" in sheet
    assert "did not come back: unknown" in sheet


def test_the_number_beside_the_inbox_is_the_same_on_every_page(asked: Story, unknown: Story) -> None:
    from tests.pages.story import Story as Another

    assert Another("quitter").go().run.status == "needs_human"
    for path in ("/", "/runs", "/health"):
        page = browser("reviewer").get(path).content.decode()
        assert ", 3 items wait for you" in page, path


def test_stored_data_is_loaded_on_demand(asked: Story) -> None:
    seq = asked.run.events.filter(kind="CallEnded").latest("seq").seq
    path = f"{asked.page}/events/{seq}"
    whole = browser("auditor").get(path)
    part = browser("auditor").get(path, headers={"HX-Request": "true"})
    assert "order:O-1042:v" in whole.content.decode() and "<html" in whole.content.decode()
    assert "order:O-1042:v" in part.content.decode() and "<html" not in part.content.decode()


def test_a_damaged_record_is_named_on_the_page(asked: Story) -> None:
    Run.objects.filter(pk=asked.run.pk).update(state=asked.run.state.replace('"v":1', '"v": 1'))
    page = browser("auditor").get(asked.page).content.decode()
    assert "Record damaged" in page and "Stored data of this run does not match its record" in page


def test_pages_cost_the_same_number_of_queries_whatever_they_show(asked: Story) -> None:
    def cost(path: str) -> int:
        client = browser("reviewer")
        client.get(path)
        with counted() as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    few = {path: cost(path) for path in ("/", "/runs", asked.page)}
    for _ in range(3):
        Story().go()
    decide(asked, "approve")
    asked.go()
    more = {path: cost(path) for path in ("/", "/runs", asked.page)}
    assert more["/"] == few["/"] and more["/runs"] == few["/runs"]
    assert more[asked.page] <= few[asked.page] + 2  # a finished run reads its answer and its evidence
    assert max(more.values()) <= 29, more  # PostgreSQL is also asked for the time


def test_older_cards_stand_on_a_page_of_their_own(seeded: None, service: object) -> None:
    from runs.queries.timeline import timeline

    story = Story("repeater", limits={"repeats": 50, "turns": 12}).go()
    last = timeline(story.run, limit=20)
    assert last.older is not None and last.cards[0].shape == "turn"
    seen = [card.id for card in last.cards]
    older: int | None = last.older
    while older is not None:
        before = timeline(story.run, before=older, limit=20)
        seen = [card.id for card in before.cards] + seen
        older = before.older
    assert seen == [card.id for card in timeline(story.run, limit=10_000).cards]
    assert browser("auditor").get(f"{story.page}?before={last.older}").status_code == 200
