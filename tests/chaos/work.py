"""The work that goes on during every fault: runs of mixed agents, and people who decide in their browsers."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import psycopg

from tests.chaos.yard import Yard

ENDS = ("succeeded", "failed", "cancelled")
MIX = ("refund", "medley", "messenger", "pickup-soon")
_orders = itertools.count(5001)


class People(threading.Thread):
    """A reviewer who approves what is asked, answers what is asked, and looks at what is in doubt once it is calm.

    `confirmed` are the approvals of which the web said to the browser that they are decided.
    """

    def __init__(self, yard: Yard) -> None:
        super().__init__(daemon=True)
        self.yard, self.calm, self.over = yard, threading.Event(), threading.Event()
        self.confirmed: set[int] = set()
        self.browsers: dict[str, Any] = {}
        self.turn = itertools.cycle(("web-1", "web-2"))

    def run(self) -> None:
        """Until the suite is over; what fails is tried again, as people do."""
        while not self.over.wait(0.15):
            with contextlib.suppress(httpx.HTTPError, AssertionError, KeyError, OSError, psycopg.Error):
                self._round()

    def _post(self, path: str, **fields: str) -> bool:
        """Whether the web said that it is done."""
        web = next(self.turn)
        if web not in self.browsers:
            self.browsers[web] = self.yard.signed_in("reviewer", web)
        answer = self.browsers[web].post(path, fields, timeout=4)
        if "/sign-in" in answer.headers.get("Location", ""):
            del self.browsers[web]
            return False
        return int(answer.status_code) < 400

    def _round(self) -> None:
        waiting = (
            "SELECT a.id, a.digest, c.tool FROM runs_approval a JOIN runs_call c ON c.run_id = a.run_id"
            " AND c.turn = a.turn AND c.ordinal = a.ordinal WHERE a.status = 'pending' ORDER BY a.id LIMIT 5"
        )
        for row in self.yard.sql(waiting):
            if self._post(f"/approvals/{row['id']}/approve", digest=row["digest"], confirm=row["tool"]):
                self.confirmed.add(row["id"])
        for row in self.yard.sql("SELECT id FROM runs_question WHERE status = 'open' LIMIT 5"):
            self._post(f"/questions/{row['id']}/answer", answer="yes")
        if self.calm.is_set():
            self._look()

    def _look(self) -> None:
        ledger = self.yard.ledger()
        keys = Counter(row["key"] for row in ledger)
        sql = (
            "SELECT c.run_id, c.turn, c.ordinal, c.key, c.arguments, c.tool FROM runs_call c JOIN runs_run r ON r.id ="
            " c.run_id WHERE c.status = 'unknown' AND r.status = 'needs_human'"
        )
        for row in self.yard.sql(sql):
            done = keys[row["key"]] or (row["tool"] == "send_message" and _sent(ledger, row))
            place = f"/runs/{row['run_id']}/calls/{row['turn']}.{row['ordinal']}/attest"
            self._post(place, verdict="happened" if done else "not_happened", reference="", why="I read the ledger.")
        stops = ("crashes", "error")
        sql = "SELECT id, state FROM runs_run WHERE status IN ('needs_human', 'stalled', 'budget_exhausted')"
        for row in self.yard.sql(sql):
            reason = json.loads(row["state"]).get("stop", {}).get("re", "")
            if reason != "unknown_effect":
                self._post(f"/runs/{row['id']}/{'resume' if reason in stops else 'give-up'}", why="enough")


def _sent(ledger: list[dict[str, Any]], call: dict[str, Any]) -> bool:
    """A message carries no key: its text, on an order of one run, names it."""
    order = json.loads(call["arguments"])["order_id"]
    return any(row["kind"] == "message" and row["order_id"] == order for row in ledger)


def start(yard: Yard, count: int = 4, tend: Callable[[], object] = lambda: None) -> list[int]:
    """Runs of mixed agents, each on an order of its own, started in a browser; tried again while the web is away.

    `tend` is called before every try.
    """
    runs, mix, browser = list[int](), itertools.cycle(MIX), None
    for _ in range(count):
        agent, order = next(mix), f"O-{next(_orders)}"
        fields = {
            "goal": "Survive.", "request_key": f"chaos-{order}", "input_order_id": order, "fact_customer": "C-7",
        }  # fmt: skip
        more = {"refund": {"input_amount": "1.00"}, "medley": {"input_seed": order}, "messenger": {"input_text": order}}
        fields |= more.get(agent, {"input_day": "2026-12-04"})
        end = time.monotonic() + 40
        while time.monotonic() < end:
            tend()
            with contextlib.suppress(httpx.HTTPError, AssertionError):
                browser = browser or yard.signed_in("operator")
                answer = browser.post(f"/runs/new/{agent}", fields, timeout=5)
                if answer.status_code == 302:
                    runs.append(int(answer.headers["Location"].rpartition("/")[2]))
                    break
                assert answer.status_code >= 500, (answer.status_code, answer.text[:500])
            time.sleep(0.2)
        else:
            raise AssertionError("a run could not be started")
    return runs


def open_runs(yard: Yard, runs: list[int]) -> list[int]:
    """Those that have not ended; one that has vanished has not."""
    found = {row["id"]: row["status"] for row in yard.sql("SELECT id, status FROM runs_run WHERE id = ANY(%s)", runs)}
    return [run for run in runs if found.get(run) not in ENDS]
