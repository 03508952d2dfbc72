"""The page of a run: every window has an address, what is looked for is found, and the record can be taken away."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from runs.journal.chain import event_hash, sha
from runs.models import Call, Event, Run
from tests.longrun import long_run
from tests.pages.story import Story, browser, counted, decide

HEADER = ("seq", "kind", "turn", "ordinal", "revision", "actor", "person", "epoch", "at")
CARD = re.compile(r'<li class="event[^"]*"[^>]*? id="(card-[\w-]+)"')


def page(path: str, who: str = "auditor") -> str:
    answer = browser(who).get(path)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def cards(path: str) -> list[str]:
    return CARD.findall(page(path))


class TestTheHead:
    def test_says_what_is_used_of_which_limit_and_what_it_waits_for(self, asked: Story) -> None:
        head = page(asked.page)
        assert "1 approval. A person has to decide before it goes on." in head
        for label in ("Turns", "Calls", "Working", "Waiting", "Tokens", "Cost"):
            assert f"<dt>{label}</dt>" in head
        assert "a script answers; nobody bills it" in head  # and nothing says 0
        assert "0 of 1 hold" in head and f"Head matches event {asked.run.seq}" in head

    def test_says_when_no_worker_is_there_to_take_it(self, seeded: None) -> None:
        story = Story()
        assert "No worker is alive, so nobody takes it." in page(f"/runs/{story.run.pk}")


class TestALongRun:
    @pytest.fixture
    def run(self, seeded: None, service: object) -> Run:
        return long_run(600, notes=3)

    def test_is_shown_by_its_end_and_older_and_newer_windows_meet_without_a_gap(self, run: Run) -> None:
        newest = page(f"/runs/{run.pk}")
        seen, path = CARD.findall(newest), f"/runs/{run.pk}"
        assert len(seen) < 400
        while older := re.search(r'id="older" rel="prev" href="(\?before=\d+)">', page(path)):
            path = f"/runs/{run.pk}{older[1]}"
            window = cards(path)
            assert 0 < len(window) < 400 and not set(window) & set(seen)
            seen = window + seen
        calls = Call.objects.filter(run=run).count()
        assert sum(name.startswith("card-call") for name in seen) == calls
        assert sum(name.startswith("card-turn") for name in seen) == 150

    def test_every_event_has_an_address_that_opens_its_window(self, run: Run) -> None:
        for seq in (1, 300, run.seq // 2, run.seq - 1):
            event = Event.objects.get(run=run, seq=seq)
            name = f"card-call-{event.turn}-{event.ordinal}" if event.ordinal else ""
            window = cards(f"/runs/{run.pk}?at={seq}")
            assert len(window) < 400
            assert (name in window) if name else window

    def test_only_the_newest_window_takes_new_cards(self, run: Run) -> None:
        assert 'id="timeline"' in page(f"/runs/{run.pk}")
        for way in ("?before=200", "?at=50", "?kind=note", "?view=waterfall", "?view=raw", "?view=decisions"):
            shown = page(f"/runs/{run.pk}{way}")
            assert 'id="timeline"' not in shown and "?cards=no" in shown, way

    def test_next_error_walks_through_all_that_went_wrong_and_begins_again(self, run: Run) -> None:
        wrong = set(Call.objects.filter(run=run).exclude(outcome="ok").values_list("turn", "ordinal"))
        assert wrong
        mine, at, found = browser("auditor"), 0, []
        while True:
            to = mine.get(f"/runs/{run.pk}/next/error?after={at}").headers["Location"]
            match = re.search(r"\?at=(\d+)#card-call-(\d+)-(\d+)$", to)
            assert match, to
            if int(match[1]) <= at:
                break
            at = int(match[1])
            found.append((int(match[2]), int(match[3])))
            if at == max(Event.objects.filter(run=run, kind="CallJudged").values_list("seq", flat=True)):
                break
        assert set(found) == wrong and len(found) == len(wrong)
        assert "this is the first again" in page_after(mine, to)

    def test_a_page_costs_as_many_queries_as_that_of_a_short_run(self, run: Run) -> None:
        short = long_run(8)
        for way in ("", "?view=waterfall", "?view=raw", "?q=customer", "?at=9"):
            cost = []
            for one in (short, run):
                client = browser("auditor")
                client.get(f"/runs/{one.pk}{way}")
                with counted() as queries:
                    client.get(f"/runs/{one.pk}{way}")
                cost.append(len(queries))
            assert cost[1] <= cost[0] + 2, (way, cost)


def page_after(client: object, to: str) -> str:
    return str(client.get(to).content.decode())  # type: ignore[attr-defined]


class TestLookingForSomething:
    @pytest.fixture
    def run(self, seeded: None, service: object) -> Run:
        return long_run(240, notes=2)

    def test_by_kind(self, run: Run) -> None:
        assert len(cards(f"/runs/{run.pk}?kind=note")) == 2
        assert {name[:9] for name in cards(f"/runs/{run.pk}?kind=turn")} == {"card-turn"}

    def test_by_state_and_tool(self, run: Run) -> None:
        denied = Call.objects.filter(run=run, status="denied")
        assert cards(f"/runs/{run.pk}?state=denied") == [f"card-call-{c.turn}-{c.ordinal}" for c in denied]
        assert not cards(f"/runs/{run.pk}?state=denied&tool=refund_order")
        assert "No event of this run is like that." in page(f"/runs/{run.pk}?state=denied&tool=refund_order")

    def test_by_text_also_in_stored_data_that_is_folded(self, run: Run) -> None:
        found = page(f"/runs/{run.pk}?q=O-1017")
        call = Call.objects.get(run=run, arguments__contains='"O-1017"')
        assert CARD.findall(found) == [f"card-call-{call.turn}-{call.ordinal}"]
        assert re.search(r"\d+ events? match", found)

    def test_by_who(self, run: Run) -> None:
        persons = Event.objects.filter(run=run, actor="person").count()
        assert len(cards(f"/runs/{run.pk}?actor=person")) == persons

    def test_what_makes_no_sense_counts_as_not_asked(self, run: Run) -> None:
        assert cards(f"/runs/{run.pk}?kind=nonsense&state=odd&actor=%00") == cards(f"/runs/{run.pk}")


class TestDecisions:
    def test_stand_out_with_the_person_the_words_and_what_was_changed(self, asked: Story) -> None:
        arguments = json.dumps(json.loads(asked.call.arguments) | {"amount": "50.00"})
        assert decide(asked, "edit", mode="json", json=arguments, why="Half is fair.").status_code == 302
        asked.go()
        shown = page(asked.page)
        card = shown[shown.index(f'id="card-call-{asked.call.turn}-{asked.call.ordinal}"') :]
        assert "reviewer changed the arguments" in card and "Half is fair." in card
        assert "<del data-line" in card and "amount: 80.00" in card and "amount: 50.00" in card


class TestTheWaterfall:
    def test_draws_work_and_human_wait_apart_and_says_the_same_in_words(self, asked: Story) -> None:
        shown = page(f"{asked.page}?view=waterfall")
        assert 'class="wait"' in shown and "The same as a table" in shown
        assert "waiting for a person" in shown
        rows = re.findall(r'<a class="name" href="[^"]*#(card-[\w-]+)"', shown)
        assert rows == [name for name in cards(asked.page) if not name.startswith("card-event")]

    def test_of_a_long_run_is_a_window_under_a_strip_of_the_whole(self, seeded: None, service: object) -> None:
        run = long_run(600)
        shown = page(f"/runs/{run.pk}?view=waterfall")
        to = re.findall(r'href="\?view=waterfall&amp;at=(\d+)"', shown)
        assert len(to) > 30 and shown.count("<li data-tone") < 400
        assert "Older" in shown and "card-call" in page(f"/runs/{run.pk}?view=waterfall&at={to[3]}")


class TestTheRecordAsAFile:
    def test_can_be_checked_by_whoever_has_it(self, asked: Story) -> None:
        answer = browser("auditor").get(f"{asked.page}/export.jsonl")
        assert answer["Content-Disposition"] == f'attachment; filename="R-{asked.run.pk}.jsonl"'
        opening, *events = [json.loads(line) for line in b"".join(answer).decode().splitlines()]
        assert opening["events"] == len(events) == asked.run.seq and opening["domain"]
        previous = b""
        for event in events:
            place = [
                event[name] for name in ("seq", "kind", "turn", "ordinal", "revision", "actor", "person", "epoch", "at")
            ]
            digests = [bytes.fromhex(event[n]) if event[n] else None for n in ("payload_digest", "state_digest")]
            if event["payload"] is not None:
                assert sha(event["payload"]) == digests[0]
            previous = event_hash(opening["uid"], place, event["body"], *digests, previous)
            assert previous.hex() == event["hash"]
        assert previous.hex() == opening["head"]

    def test_as_a_table_runs_no_formula(self, seeded: None, service: object) -> None:
        story = Story(goal='=HYPERLINK("http://example.org")').go()
        answer = browser("auditor").get(f"{story.page}/export.csv")
        rows = list(csv.reader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))
        assert len(rows) == story.run.seq + 1
        assert rows[1][-1].startswith("'=HYPERLINK")
