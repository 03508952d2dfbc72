"""The work that goes on during every fault: runs of mixed agents, and people who decide in their browsers."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections import Counter, defaultdict
from typing import Any

import httpx2 as httpx

from tests.chaos.yard import Yard, parsed

ENDS = ("succeeded", "failed", "cancelled")
NEVER = ("denied", "refused", "expired", "withdrawn", "invalid")
MIX = ("refund", "medley", "messenger", "pickup-soon")
_orders = itertools.count(5001)


class People(threading.Thread):
    """A reviewer who approves what is asked, answers what is asked, and looks at what is in doubt once it is calm."""

    def __init__(self, yard: Yard) -> None:
        super().__init__(daemon=True)
        self.yard, self.calm, self.over = yard, threading.Event(), threading.Event()
        self.browsers: dict[str, Any] = {}
        self.turn = itertools.cycle(("web-1", "web-2"))

    def run(self) -> None:
        """Until the suite is over; what fails is tried again, as people do."""
        while not self.over.wait(0.15):
            with contextlib.suppress(httpx.HTTPError, AssertionError, KeyError, OSError):
                self._round()

    def _post(self, path: str, **fields: str) -> int:
        web = next(self.turn)
        if web not in self.browsers:
            self.browsers[web] = self.yard.signed_in("reviewer", web)
        answer = self.browsers[web].post(path, fields, timeout=4)
        if answer.status_code in (403, 302) and "/sign-in" in answer.headers.get("Location", ""):
            del self.browsers[web]
        return int(answer.status_code)

    def _round(self) -> None:
        for row in self.yard.sql("SELECT id, digest FROM runs_approval WHERE status = 'pending' ORDER BY id LIMIT 5"):
            self._post(f"/approvals/{row['id']}/approve", digest=row["digest"], why="")
        for row in self.yard.sql("SELECT id FROM runs_question WHERE status = 'open' LIMIT 5"):
            self._post(f"/questions/{row['id']}/answer", answer="yes")
        if self.calm.is_set():
            self._look()

    def _look(self) -> None:
        keys = Counter(row["key"] for row in self.yard.ledger())
        sql = (
            "SELECT c.run_id, c.turn, c.ordinal, c.key, c.arguments, c.tool FROM runs_call c JOIN runs_run r ON r.id ="
            " c.run_id WHERE c.status = 'unknown' AND r.status = 'needs_human'"
        )
        for row in self.yard.sql(sql):
            done = keys[row["key"]] or (row["tool"] == "send_message" and _sent(self.yard, row))
            place = f"/runs/{row['run_id']}/calls/{row['turn']}.{row['ordinal']}/attest"
            self._post(place, verdict="happened" if done else "not_happened", reference="", why="I read the ledger.")
        stops = ("crashes", "error")
        sql = "SELECT id, state FROM runs_run WHERE status IN ('needs_human', 'stalled', 'budget_exhausted')"
        for row in self.yard.sql(sql):
            reason = json.loads(row["state"]).get("stop", {}).get("re", "")
            if reason != "unknown_effect":
                self._post(f"/runs/{row['id']}/{'resume' if reason in stops else 'give-up'}", why="enough")


def _sent(yard: Yard, call: dict[str, Any]) -> bool:
    """A message carries no key: its text, on an order of one run, names it."""
    order = json.loads(call["arguments"])["order_id"]
    return any(row["kind"] == "message" and row["order_id"] == order for row in yard.ledger())


def start(yard: Yard, count: int = 4) -> list[int]:
    """Runs of mixed agents, each on an order of its own, started in a browser; tried again while the web is away."""
    runs, mix = list[int](), itertools.cycle(MIX)
    for number in range(count):
        agent, order = next(mix), f"O-{next(_orders)}"
        fields = {
            "goal": "Survive.",
            "request_key": f"chaos-{order}-{number}",
            "input_order_id": order,
            "fact_customer": "C-7",
        }
        more = {"refund": {"input_amount": "1.00"}, "medley": {"input_seed": order}, "messenger": {"input_text": order}}
        fields |= more.get(agent, {"input_day": "2026-12-04"})
        end = time.monotonic() + 40
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError, AssertionError):
                answer = yard.signed_in("operator").post(f"/runs/new/{agent}", fields, timeout=5)
                if answer.status_code == 302:
                    runs.append(int(answer.headers["Location"].rpartition("/")[2]))
                    break
                assert answer.status_code >= 500, (answer.status_code, answer.text[:500])
            time.sleep(0.2)
        else:
            raise AssertionError("a run could not be started")
    return runs


def open_runs(yard: Yard, runs: list[int]) -> list[dict[str, Any]]:
    """Those that have not ended."""
    return [
        r
        for r in yard.sql("SELECT id, status, state FROM runs_run WHERE id = ANY(%s)", runs)
        if r["status"] not in ENDS
    ]


def judge(yard: Yard, runs: list[int]) -> Counter[str]:
    """What became of these runs, by the ledger and the record."""
    found: Counter[str] = Counter()
    columns = "run_id, seq, kind, turn, ordinal, revision, epoch, at, person_id, body"
    sql = f"SELECT {columns} FROM runs_event WHERE run_id = ANY(%s) ORDER BY run_id, seq"
    events = parsed(yard.sql(sql, runs))
    calls = {
        (c["run_id"], c["turn"], c["ordinal"]): c
        for c in yard.sql("SELECT * FROM runs_call WHERE run_id = ANY(%s)", runs)
    }
    effects = _effects(yard, calls)
    starts: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    epochs: dict[int, int] = {}
    settled: dict[Any, str] = {}
    for event in events:
        place = (event["run_id"], event["turn"], event["ordinal"])
        found["stale"] += event["epoch"] < epochs.get(event["run_id"], 0)
        epochs[event["run_id"]] = max(event["epoch"], epochs.get(event["run_id"], 0))
        if event["kind"] == "CallStarted":
            starts[place].append(event)
        elif event["kind"] == "CallSettled":
            settled[place] = event["body"]["proof"]
            found["unknown_person" if event["body"]["proof"] == "human" else "unknown_settled"] += 1
    for place, call in calls.items():
        happened = effects.get(place, [])
        if call["effect"] not in ("keyed", "lookup", "opaque"):
            continue
        expected = call["status"] == "done" and call["outcome"] == "ok"
        found["expected"] += expected
        found["executed"] += len(happened)
        found["lost"] += expected and not happened and settled.get(place) != "human"
        found["duplicated"] += max(0, len(happened) - 1)
        found["unknown_wrong"] += bool(happened) and call["status"] in (*NEVER, "not_executed")
        found["unintended"] += any(e["at"] < min((s["at"] for s in starts[place]), default=1 << 62) for e in happened)
    return found


def _effects(yard: Yard, calls: dict[Any, dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Effects by the call that they belong to; one that belongs to none is an error."""
    by_key = {call["key"]: place for place, call in calls.items() if call["key"]}
    orders = {json.loads(call["arguments"]).get("order_id") for call in calls.values() if call["arguments"] != "{}"}
    found: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for effect in yard.ledger():
        if effect["order_id"] not in orders or effect["kind"] == "delivery_note":
            continue
        place = by_key.get(effect["key"])
        if effect["kind"] == "message":
            about = [(p, c) for p, c in calls.items() if c["tool"] == "send_message" and c["started_at"]]
            about = [(p, c) for p, c in about if json.loads(c["arguments"])["order_id"] == effect["order_id"]]
            same = [p for p, c in about if c["started_at"] <= effect["at"]]
            place = max(same, key=lambda p: calls[p]["started_at"]) if same else None
        assert place is not None, f"an effect without an intent: {effect}"
        found[place].append(effect)
    return found
