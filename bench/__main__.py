"""`python -m bench [NAME...] [--json] [--turns N] [--rounds N] [--short] [--write]`; without a name all.

A measurement of all is kept in docs/performance.md; with --write also one of some, beside the lines of the others.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator

from bench.databases import ROOT
from bench.durable import (
    durable_turns_dbos_pg_1000,
    durable_turns_langgraph_delta_pg_1000,
    durable_turns_langgraph_pg_200,
    durable_turns_langgraph_pg_1000,
    recovery_dbos_1000,
    wal_per_turn,
)
from bench.face import (
    commit_to_dom,
    fanout_200,
    first_screen_10k,
    list_pages,
    paint_10k,
    row_render,
    watcher_rss,
)
from bench.report import Result, line, page
from bench.turns import cost_flatness_5000, loop_efficiency, queries_per_turn
from bench.waiting import approve_history_flatness, approve_to_running_celery, embedded_approve_to_running

BENCHES: dict[str, Callable[[int, int], Iterator[Result]]] = {
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
    "commit_to_dom": commit_to_dom,
    "paint_10k": paint_10k,
    "fanout_200": fanout_200,
    "first_screen_10k": first_screen_10k,
    "row_render": row_render,
    "watcher_rss": watcher_rss,
    "list_pages": list_pages,
}
WINDOWS = 1100  # turns of `cost_flatness_5000`, whose two windows of 500 must not overlap
SHORT = 50
# Not in a short look: too long, the same programs as another one's, or run by a test.
NOT_SHORT = {
    "cost_flatness_5000", "durable_turns_langgraph_pg_200", "approve_history_flatness", "queries_per_turn", "paint_10k",
    "fanout_200", "watcher_rss", "first_screen_10k",
}  # fmt: skip


def main() -> None:
    """Measure, print one line a result."""
    given = arguments()
    chosen = given.names or list(BENCHES)
    if given.short:
        given.turns, given.rounds = SHORT, 1
        chosen = [name for name in chosen if name not in NOT_SHORT]
    results = []
    for name in chosen:
        found = list(BENCHES[name](given.turns, given.rounds))
        if given.short and not found:
            sys.exit(f"bench: {name} measured nothing")
        results += found
        for each in found:
            print(json.dumps(each) if given.json else line(each), flush=True)
    if given.write or not (given.names or given.short):
        kept = ROOT / "docs" / "performance.md"
        kept.write_text(page(results, kept.read_text() if given.names else ""))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--turns", type=int, default=5000, help="at most so long a run")
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides are measured")
    parser.add_argument("--short", action="store_true", help=f"one round of {SHORT} turns of most: do they run?")
    given = parser.parse_args()
    if unknown := set(given.names) - set(BENCHES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    if given.turns < 1 or given.rounds < 1:
        parser.error("--turns and --rounds count from 1")
    flat = not given.names or "cost_flatness_5000" in given.names
    if not given.short and flat and given.turns < WINDOWS:
        parser.error(f"the two windows of 500 turns need --turns of at least {WINDOWS}")
    return given


if __name__ == "__main__":
    main()
