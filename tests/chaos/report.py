"""docs/faults.md from what the suites wrote: `python -m tests.chaos.report`, also at the end of `make chaos`."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import quantiles
from typing import Any

from tests.stack import ROOT

PROOF = ROOT / "artifacts" / "proof"
PAGE = ROOT / "docs" / "faults.md"
Rows = list[dict[str, Any]]
HEAD = """# Faults: what was broken, and what became of it

Written by `make chaos` (`tests/chaos/report.py`) from what it, `make fuzz` and `make races` measured; do not edit. The
oracle is the ledger of the order service, which stands outside of our database: an effect is what is in it, whatever
anybody says.

- **lost**: a call that counts as done, on no person's word, and is not in the ledger; a run or a vote that the web
  confirmed and that is gone. **duplicated**: more effects than one of a call. **stuck**: a run that has not ended 90 s
  after everything was healed. **stale**: an event under an older epoch than the one before it, or a gap.
- **unknown**: calls of which somebody had to find out: the host itself; a person; *wrong* are those held to be not
  executed that happened all the same, by a quiet look-up (each has its incident) or on a person's word.
- **late**: effects after another worker had taken over from their sender; allowed only where the fault itself delays
  what was sent.
- **to the end**: time from healing to the end of a run, of the runs that had not ended under the fault.
- `0/n` is none in n. It bounds the rate by 3/n (95 %), and where n is small that is little. A cell whose fault never
  fired says "not tested", and fails the suite.
"""
CHAOS = """## Real processes

2 web, 2 workers, 2 sweepers, PostgreSQL, Redis and the order service, each link through a proxy that can be cut. Four
runs or more of mixed agents, and a person who decides in a browser, go on during each fault. `fired` counts where it
took effect: processes that died or stood still at the place, connections that a cut touched or that waited in a COMMIT,
requests that met a fault of the service; for what is broken as a whole, how often runs were under way.
"""
OTHERS = {
    "unintended": "effects before their intent was committed", "false": "verdicts of never started over an effect",
    "unseen": "wrong presumptions without an incident", "ahead": "events dated after their commit",
}  # fmt: skip
FUZZED = {"frozen": "workers frozen", "takeovers": "leases taken over", "seconds": "seconds of work"}
HOLE = """The row *sending: the hole that stays*: a worker frozen between its last look at its lease and the first
byte of its request sends late, and nothing on our side can stop it. A key closes it (class keyed). For findable and
one-shot tools it is open: the watch finds the first, and the second stays with the person who attests. *late* and
*wrong* say how often it was met."""


def main() -> None:
    """Write the page; says which suites have not been run here."""
    write: dict[str, Callable[[dict[str, Any]], list[str]]] = {"chaos": chaos, "fuzz": fuzz, "races": races}
    found = [json.loads(path.read_text()) for path in sorted(PROOF.glob("*.json"))]
    parts = [HEAD]
    for name, section in write.items():
        suites = [suite for suite in found if suite.get("suite") == name]
        for suite in suites:
            parts += section(suite)
        if not suites:
            parts += [f"## {name.capitalize()}", "", "not tested", ""]
    PAGE.write_text("\n".join(parts).rstrip() + "\n")


def chaos(suite: dict[str, Any]) -> list[str]:
    """Real processes: one row a cell."""
    rows, about = suite["rows"], suite["about"]
    kills = sum(row["fired"] for row in rows if row["fault"] == "kill -9")
    times = [ms for row in rows for ms in row["recover_ms"]]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    names = ("lost", "duplicated", "stuck", "stale")
    totals = ", ".join(f"{name} {_zero(_total(rows), name)}" for name in names)
    others = ", ".join(f"{text} {sum(row[name] for row in rows)}" for name, text in OTHERS.items())
    bound = 3 / max(1, sum(row["executed"] for row in rows))
    columns = "fault | where | trials | fired | expected | executed | lost | duplicated | stuck | stale | late"
    lines = [
        CHAOS, f"{about['on']}, commit {about['commit']}, {about['processors']} processors; {versions}.", "",
        f"{about['cells']} of {about['of']} cells, {sum(row['fired'] for row in rows)} faults,",
        f"{kills} of them processes killed at a named place.",
        f"**{totals}**: a lost or repeated effect in less than {bound:.1%} (95 %).",
        f"Of the same: {others}.",
        f"Seconds to the end: {_spread(times)} (p50, p95, most).", "",
        f"| {columns} | unknown: host | person | wrong | to the end, s: p50 | p95 | most |", "|---" * 17 + "|",
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: row["fault"] != "kill -9"):
        told = ("unknown_settled", "unknown_person", "unknown_wrong")
        cells = [row["fault"], row["where"], row["trials"], row["fired"] or "not tested"]
        cells += [row["expected"], row["executed"], *(_zero(row, name) for name in (*names, "late"))]
        cells += [*(row[name] for name in told), *_spread(row["recover_ms"]).split(", ")]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, "", HOLE, ""]


def _total(rows: Rows) -> dict[str, Any]:
    names = ("lost", "duplicated", "stuck", "stale", "runs", "events", "expected", "executed")
    return {name: sum(row[name] for row in rows) for name in names}


def _zero(row: dict[str, Any], name: str) -> str:
    """A figure with its n."""
    n = {"lost": "expected", "duplicated": "executed", "stuck": "runs", "stale": "events", "late": "executed"}[name]
    return f"{row[name]}/{row[n]}"


def _spread(ms: list[int]) -> str:
    """p50, p95 and most, in seconds."""
    if not ms:
        return "-, -, -"
    cuts = quantiles(ms, n=20, method="inclusive") if len(ms) > 1 else [ms[0]] * 19
    return f"{cuts[9] / 1000:.1f}, {cuts[18] / 1000:.1f}, {max(ms) / 1000:.1f}"


def fuzz(suite: dict[str, Any]) -> list[str]:
    """The simulation: one line for the whole, one table for what was injected."""
    whole, *rest = suite["rows"]
    about = suite["about"]
    zeros = ", ".join(f"{name} {whole[name]}/{whole['trials']}" for name in ("lost", "duplicated", "stuck", "stale"))
    more = ", ".join(f"{about[key]} {text}" for key, text in FUZZED.items() if key in about)
    lines = [
        f"## Simulated, {suite['db']}", "",
        f"{whole['trials']} scenarios, {whole['executed']} effects, each after its intent: **{zeros}**; n counts",
        "scenarios, and one that breaks a promise fails the suite.",
        f"{whole['unknown_wrong']} presumed or attested wrongly, each with its incident or on a person's word.",
        f"{more}.", "",
        "| injected | where | times |", "|---|---|---|",
    ]  # fmt: skip
    return [*lines, *(f"| {row['fault']} | {row['where']} | {row['fired']} |" for row in rest), ""]


def races(suite: dict[str, Any]) -> list[str]:
    """Real parallel processes: who won how often."""
    lines = [f"## Races, {suite['db']}", "", "| race | trials | winners | double |", "|---|---|---|---|"]
    for row in suite["rows"]:
        winners = ", ".join(f"{name} {n}" for name, n in row["winners"].items())
        lines.append(f"| {row['race']} | {row['trials']} | {winners} | {row['double']}/{row['trials']} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
