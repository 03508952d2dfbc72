"""`python -m bench [NAME] [--json] [--turns N] [--rounds N]`; without a name all, kept in docs/performance.md."""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from bench.databases import ROOT
from bench.durable import (
    durable_turns_dbos_pg_1000,
    durable_turns_langgraph_delta_pg_1000,
    durable_turns_langgraph_pg_200,
    durable_turns_langgraph_pg_1000,
    recovery_dbos_1000,
    wal_per_turn,
)
from bench.turns import cost_flatness_5000, loop_efficiency, queries_per_turn
from bench.waiting import approve_history_flatness, approve_to_running_celery, embedded_approve_to_running

BENCHES: dict[str, Callable[[int, int], Iterator[dict[str, Any]]]] = {
    "durable_turns_langgraph_pg_1000": durable_turns_langgraph_pg_1000,
    "durable_turns_langgraph_pg_200": durable_turns_langgraph_pg_200,
    "durable_turns_langgraph_delta_pg_1000": durable_turns_langgraph_delta_pg_1000,
    "durable_turns_dbos_pg_1000": durable_turns_dbos_pg_1000,
    "queries_per_turn": queries_per_turn,
    "loop_efficiency": loop_efficiency,
    "cost_flatness_5000": cost_flatness_5000,
    "wal_per_turn": wal_per_turn,
    "approve_to_running_celery": approve_to_running_celery,
    "approve_history_flatness": approve_history_flatness,
    "embedded_approve_to_running": embedded_approve_to_running,
    "recovery_dbos_1000": recovery_dbos_1000,
}
LONG_ONES = {"cost_flatness_5000", "approve_history_flatness", "durable_turns_langgraph_pg_1000"}
NOTES = ROOT / "bench" / "notes.md"  # written by hand: what stands between us and the stretch
HEAD = """# Performance

Written by `make bench`; do not edit. What each line measures stands in `bench/`. Ratios count: times differ from one
machine to the next, and on one machine from hour to hour.
"""


def main() -> None:
    """Measure, print one line a result."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("name", nargs="?", choices=BENCHES, metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--turns", type=int, default=5000, help="length of the long run (at least 1,100)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--short", action="store_true", help="one short round of each but the long ones: do they run?")
    given = parser.parse_args()
    if given.short:
        for name in BENCHES.keys() - LONG_ONES:
            for found in BENCHES[name](100, 1):
                print(json.dumps(found), flush=True)
        return
    if given.turns < 1100 or given.rounds < 1:
        parser.error("the two windows of 500 turns need --turns of at least 1100, and --rounds at least 1")
    results = []
    for name in [given.name] if given.name else BENCHES:
        for found in BENCHES[name](given.turns, given.rounds):
            results.append(found)
            print(json.dumps(found) if given.json else line(found), flush=True)
    if not given.name:
        (ROOT / "docs" / "performance.md").write_text(page(results, os.getloadavg()[2]))


def line(found: dict[str, Any]) -> str:
    """One result for reading."""
    rate = f" ({'/'.join(map(str, found['turns_per_second']))} turns/s)" if "turns_per_second" in found else ""
    return (
        f"{found['bench']} {found['database']} {found['what']}: {found['ours']} {found['unit']}, "
        f"{found['ratio']}x of {found['peer']}; "
        f"goal {found['goal']}, stretch {found['stretch']}: {found['reached']}{rate}"
    )


def page(results: list[dict[str, Any]], load: float) -> str:
    """The results as a page; rounds that lie far apart are shown, since a median alone would hide a busy machine."""
    rows = [
        f"| {f['bench']} | {f['database']} | {f['what']} | {f['ours']} {f['unit']} | {f['peer']} | {f['ratio']} | "
        f"{', '.join(map(str, f.get('ratios', [f['ratio']])))} | {f['goal']} | {f['stretch']} | {f['reached']} |"
        for f in results
    ]
    columns = ("bench", "database", "what", "ours", "peer", "ratio", "each round", "goal", "stretch", "reached")
    head = f"| {' | '.join(columns)} |\n" + "|---" * len(columns) + "|"
    versions = sorted({f"{k} {v}" for f in results for k, v in f["versions"].items()})
    rates = [
        f"- {f['database']}, {f['what']}: {', '.join(map(str, f['turns_per_second']))} turns/s over {f['turns']} turns"
        for f in results
        if "turns_per_second" in f
    ]
    where = (
        f"Measured {date.today()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors, load "
        f"{load:.1f} (of which the measurement is about 1),\nwith {', '.join(versions)}."
    )
    return "\n".join(
        [HEAD, where, "", head, *rows, "", "Turns a second, each round:", "", *rates, "", NOTES.read_text()]
    )


if __name__ == "__main__":
    main()
