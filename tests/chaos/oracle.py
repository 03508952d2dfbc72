"""What became of runs, by the ledger of the order service, which stands outside of our database, and by the record.

Figures of one trial: runs, events (n of stale), expected (calls that count as done), executed (effects in the ledger);
lost, duplicated, stale, unintended, false, unseen, late and ahead must be 0, each explained where it is counted.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

from tests.chaos.yard import Yard, parsed

SLACK = 400_000  # microseconds: a worker may believe in a time that is ahead by `lease.QUICK`, twice on a busy machine
EFFECTS = ("keyed", "lookup", "opaque")
NEVER = ("denied", "refused", "expired", "withdrawn", "invalid")
Place = tuple[int, int, int]
Rows = list[dict[str, Any]]


def judge(yard: Yard, runs: list[int], confirmed: set[int]) -> Counter[str]:
    """Compare record and ledger; `confirmed` are the approvals of which a browser was told that they are decided."""
    # When it was committed, by the server: what a worker writes as the time is a claim under test (`ahead`).
    committed = "(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint AS committed"
    columns = f"run_id, seq, kind, turn, ordinal, epoch, at, body, {committed}"
    sql = f"SELECT {columns} FROM runs_event WHERE run_id = ANY(%s) ORDER BY run_id, seq"
    events = parsed(yard.sql(sql, runs))
    calls = {_place(c): c for c in yard.sql("SELECT * FROM runs_call WHERE run_id = ANY(%s)", runs)}
    incidents = {_place(i) for i in yard.sql("SELECT * FROM runs_incident WHERE run_id = ANY(%s)", runs)}
    starts = {_place(e): e["committed"] for e in reversed(events) if e["kind"] == "CallStarted"}
    effects = _effects(yard, calls, starts)
    by_place: dict[Place, Rows] = defaultdict(list)
    by_run: dict[int, Rows] = defaultdict(list)
    found = Counter({"runs": len(runs), "events": len(events), "lost": _forgotten(yard, set(runs), confirmed)})
    for event in events:
        found["ahead"] += event["at"] > event["committed"] + SLACK
        by_place[_place(event)].append(event)
        by_run[event["run_id"]].append(event)
    for history in by_run.values():
        epochs = [event["epoch"] for event in history]
        found["stale"] += sum(now < before for before, now in pairwise(epochs))
        found["stale"] += [event["seq"] for event in history] != list(range(1, len(history) + 1))
    for place, call in calls.items():
        if call["effect"] in EFFECTS:
            run = by_run[place[0]]
            found += _of_call(call, by_place[place], effects.get(place, []), run, place in incidents)
    return found


def _of_call(call: dict[str, Any], own: Rows, happened: Rows, run: Rows, incident: bool) -> Counter[str]:
    """The figures of one call, with its own events, its effects and the events of its run."""
    settled = [event["body"]["proof"] for event in own if event["kind"] == "CallSettled"]
    attested = settled[-1:] == ["human"]
    expected = call["status"] == "done" and call["outcome"] == "ok"
    wrong = bool(happened) and call["status"] == "not_executed"
    started = [event for event in own if event["kind"] == "CallStarted"]
    return Counter(
        expected=int(expected),
        executed=len(happened),
        unknown_settled=sum(proof != "human" for proof in settled),
        unknown_person=settled.count("human"),
        # held to be not executed, and it happened: by a quiet look-up (then it has its incident) or on a person's word
        unknown_wrong=int(wrong),
        unseen=int(wrong and not incident and not attested),
        # counts as done, on no person's word, and did not happen
        lost=int(expected and not happened and not attested),
        duplicated=max(0, len(happened) - 1),
        # said for certain that nothing happened, and it did
        false=int(bool(happened) and call["status"] in NEVER),
        unintended=sum(effect["at"] < min((s["committed"] for s in started), default=1 << 62) for effect in happened),
        late=sum(_late(effect, own, run) for effect in happened),
    )


def _late(effect: dict[str, Any], own: Rows, run: Rows) -> bool:
    """Whether it happened after another holder had taken over from the one who sent it."""
    sends = [e for e in own if e["kind"] == "CallStarted" or (e["kind"] == "CallProbed" and _resent(e["body"]))]
    sent = max((event["epoch"] for event in sends if event["committed"] <= effect["at"]), default=0)
    return any(event["epoch"] > sent and event["committed"] < effect["at"] for event in run)


def _resent(body: dict[str, Any]) -> bool:
    return (body["how"], body["phase"]) == ("resend", "asked")


def _forgotten(yard: Yard, runs: set[int], confirmed: set[int]) -> int:
    """Runs that were started and votes that were cast, as the web told a browser, and that are not there."""
    there = {row["id"] for row in yard.sql("SELECT id FROM runs_run WHERE id = ANY(%s)", list(runs))}
    votes = {row["approval_id"] for row in yard.sql("SELECT approval_id FROM runs_decision")}
    return len(runs - there) + len(confirmed - votes)


def unseen(yard: Yard, runs: list[int]) -> bool:
    """Whether the watch has yet to say that something presumed not executed did happen."""
    sql = "SELECT 1 FROM runs_call WHERE run_id = ANY(%s) AND status = 'not_executed' AND watch_at IS NOT NULL"
    return bool(yard.sql(sql, runs))


def _place(row: dict[str, Any]) -> Place:
    return row["run_id"], row["turn"], row["ordinal"]


def _effects(yard: Yard, calls: dict[Place, dict[str, Any]], starts: dict[Place, int]) -> dict[Place, Rows]:
    """Effects by the call that they belong to; one that belongs to none is an error."""
    by_key = {call["key"]: place for place, call in calls.items() if call["key"]}
    orders = {json.loads(call["arguments"]).get("order_id") for call in calls.values() if call["arguments"] != "{}"}
    found: dict[Place, Rows] = defaultdict(list)
    for effect in yard.ledger():
        if effect["order_id"] not in orders or effect["kind"] == "delivery_note":
            continue
        place = by_key.get(effect["key"])
        if effect["kind"] == "message":
            about = [(p, c) for p, c in calls.items() if c["tool"] == "send_message" and c["started_at"]]
            about = [(p, c) for p, c in about if json.loads(c["arguments"])["order_id"] == effect["order_id"]]
            same = [p for p, _ in about if starts.get(p, 1 << 62) <= effect["at"]]
            place = max(same, key=lambda p: starts[p]) if same else None
        assert place is not None, f"an effect without an intent: {effect}"
        found[place].append(effect)
    return found
