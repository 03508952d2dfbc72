"""docs/faults.md from what the suites wrote: `python -m tests.chaos.report`, also at the end of `make chaos`."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date
from statistics import median
from typing import Any

from tests.stack import ROOT

PROOF = ROOT / "artifacts" / "proof"
HEAD = """# Faults: what was broken, and what became of it

Written by `make chaos` (`tests/chaos/report.py`); do not edit. The oracle is the ledger of the order service, which
stands outside of our database: an effect is what is in it, whatever anybody says.

- **lost**: a call that counts as done, on no person's word, and is not in the ledger. **duplicated**: more effects than
  one of a call. **stuck**: a run that has not ended 90 s after everything was healed. **stale**: an event written under
  an older epoch than one before it. **unknown**: calls of which somebody had to find out: the host itself, a person, or
  wrongly (held to be not executed, and it happened; each has its incident).
- A zero in n trials bounds the rate by about 3/n (95 %): n stands beside it. A cell whose fault never fired would be
  "not tested" and fails the suite.
- **The hole that stays** (reliability.md 2.4): a worker frozen between its last look at its lease and the first byte of
  its request can send late. A key closes it (class keyed); for findable and one-shot tools it does not: such an effect
  is found by the watch or stays with the person who attests. Frozen workers below stand still before the look
  (`before_send`) or after the effect, and not between, where nothing of ours runs.
"""


def main() -> None:
    """Write the page."""
    found = [json.loads(path.read_text()) for path in sorted(PROOF.glob("*.json"))]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    where = f"Written {date.today()} at commit {commit.strip()}, on {os.cpu_count()} processors."
    parts = [HEAD, where, ""]
    for suite in found:
        parts += {"chaos": chaos, "fuzz": fuzz, "races": races}[suite["suite"]](suite)
    (ROOT / "docs" / "faults.md").write_text("\n".join(parts).rstrip() + "\n")


def chaos(suite: dict[str, Any]) -> list[str]:
    """Real processes: one row a cell."""
    rows = suite["rows"]
    kills = sum(row["fired"] for row in rows if row["fault"] == "kill -9")
    times = sorted(ms for row in rows for ms in row["recover_ms"])
    totals = ", ".join(f"{name} {_sum(rows, name)}" for name in ("lost", "duplicated", "stuck", "stale"))
    spread = f"p50 {_s(median(times))}, p95 {_s(times[int(len(times) * 0.95)])}, at most {_s(times[-1])}"
    columns = "fault | where | trials | fired | expected | executed | lost | duplicated | stuck | stale"
    lines = [
        "## Real processes", "",
        "2 web, 2 workers, 2 sweepers, PostgreSQL, Redis and the order service, each link through a proxy to cut.",
        "Four runs of mixed agents and a person who decides go on during each fault.", "",
        f"{len(rows)} cells, {sum(row['trials'] for row in rows)} trials, {kills} processes killed at a named place;",
        f"{totals}. Seconds from healing to the end of all runs: {spread}.", "",
        f"| {columns} | unknown: host | person | wrong | to the end, s |", "|---" * 14 + "|",
    ]  # fmt: skip
    for row in rows:
        names = ("trials", "fired", "expected", "executed", "lost", "duplicated", "stuck", "stale")
        unknown = ("unknown_settled", "unknown_person", "unknown_wrong")
        cells = [row["fault"], row["where"], *(row[name] for name in (*names, *unknown)), _s(max(row["recover_ms"]))]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, ""]


def fuzz(suite: dict[str, Any]) -> list[str]:
    """The simulation: one line for the whole, one table for what was injected."""
    whole, *rest = suite["rows"]
    about = suite["about"]
    lines = [
        f"## Simulated, {suite['db']}", "",
        f"{whole['trials']} scenarios, {whole['executed']} effects, each after its intent: lost 0, duplicated 0,",
        f"stuck 0, stale 0; {whole['unknown_wrong']} presumed or attested wrongly, each with its incident or on",
        "a person's word.",
        f"{about['frozen']} workers frozen, {about['takeovers']} leases taken over. A scenario that breaks a promise",
        "fails the suite, so each zero has all scenarios as its n.", "",
        "| injected | where | times |", "|---|---|---|",
    ]  # fmt: skip
    return [*lines, *(f"| {row['fault']} | {row['where']} | {row['fired']} |" for row in rest), ""]


def races(suite: dict[str, Any]) -> list[str]:
    """Real parallel processes: who won how often."""
    lines = [f"## Races, {suite['db']}", "", "| race | trials | winners | double |", "|---|---|---|---|"]
    for row in suite["rows"]:
        winners = ", ".join(f"{name} {n}" for name, n in row["winners"].items())
        lines.append(f"| {row['race']} | {row['trials']} | {winners} | {row['double']} |")
    return [*lines, ""]


def _sum(rows: list[dict[str, Any]], name: str) -> str:
    return f"{sum(row[name] for row in rows)} (n = {sum(row['expected'] for row in rows)})"


def _s(ms: float) -> str:
    return f"{ms / 1000:.1f}"


if __name__ == "__main__":
    main()
