"""The form of a result: one JSON object a line, and a row of docs/performance.md."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.metadata import version
from statistics import median
from typing import Any

import psycopg

from bench.databases import PEERS, ROOT

Result = dict[str, Any]
NOTES = ROOT / "bench" / "notes.md"  # written by hand: what the lines mean, what stands between us and the stretch
ASK = "import json, sys, importlib.metadata as m; print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))"
HEAD = """# Performance

Written by `make bench`; do not edit: the table comes from the measurement, the text below it from `bench/notes.md`.
Ratios count, each of one round in which both sides were measured one after the other: times differ from one machine to
the next, and on one machine from hour to hour. Cells of three are min / median / max over n rounds.
"""


def result(
    name: str, kind: str, *, what: str, unit: str, ours: Sequence[float], peer: Sequence[float], goal: float,
    stretch: float, bound: str = "ratio", against: Sequence[str] = (), **more: Any,
) -> Result:  # fmt: skip
    """A result of as many rounds as `ours` and `peer` have values, each pair measured side by side.

    `bound` says what goal and stretch bound, "ratio" or "ours": from below where more is better, so where the stretch
    is above the goal. `against` names packages of the peers whose versions matter.
    """
    series = {"ratio": [a / b for a, b in zip(ours, peer, strict=True)], "ours": ours, "peer": peer}
    middle = {key: median(values) for key, values in series.items()}
    sign = 1 if stretch <= goal else -1
    met = [
        word for word, level in (("stretch", stretch), ("goal", goal)) if sign * short(middle[bound]) <= sign * level
    ]
    return {
        "bench": name, "database": kind, "what": what, **{key: short(value) for key, value in middle.items()},
        "unit": unit, "goal": goal, "stretch": stretch, "bound": bound, "reached": met[0] if met else "missed",
        "rounds": len(ours),
        "spread": {key: [short(f(values)) for f in (min, median, max)] for key, values in series.items()},
        **more, "load": round(os.getloadavg()[0], 1), "versions": versions(kind, tuple(against)),
    }  # fmt: skip


def short(value: float) -> float:
    """Three digits are more than a measurement here is worth; large numbers stay whole."""
    return round(value) if abs(value) >= 100 else float(f"{value:.3g}")


@cache
def versions(kind: str, against: tuple[str, ...]) -> dict[str, str]:
    """What was measured on: ours, the database, and the packages of the peers (of `.venv-bench`, or else ours)."""
    import sqlite3

    found = {"python": sys.version.split()[0], "django": version("django")}
    if kind == "sqlite":
        found["sqlite"] = sqlite3.sqlite_version
    else:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            found["postgresql"] = (connection.info.parameter_status("server_version") or "?").split()[0]
    if "celery" in against:
        return found | {"celery": version("celery")}
    if against:
        found |= json.loads(subprocess.run([PEERS, "-c", ASK, *against], stdout=subprocess.PIPE, check=True).stdout)
    return found


def line(found: Result) -> str:
    """One result for reading."""
    low, _, high = found["spread"]["ratio"]
    return (
        f"{found['bench']} {found['database']} {found['what']}: {found['ours']} over {found['peer']} {found['unit']} = "
        f"{found['ratio']} ({low} to {high}, n={found['rounds']}); "
        f"{found['bound']} wanted {found['goal']}, stretch {found['stretch']}: {found['reached']}"
    )


def page(results: Sequence[Result], old: str = "") -> str:
    """The results as a page, with the rounds' spread, since a median alone would hide a busy machine.

    Lines of an `old` page about what was not measured now stay as they are, above the new ones.
    """
    columns = ("bench", "database", "what", "ours", "peer", "unit", "ours / peer", "n", "goal", "stretch", "reached")
    measured = {result["bench"] for result in results}
    kept = [row for row in old.splitlines() if _bench(row) and _bench(row) not in measured | {"bench"}]
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *kept, *map(_row, results)]
    found = sorted({f"{key} {value}" for result in results for key, value in result["versions"].items()})
    loads = [result["load"] for result in results]
    where = (
        f"Measured {date.today()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors; load "
        f"{min(loads)} to {max(loads)}, of which the measurement\nitself is 1 to 2. {', '.join(found)}."
    )
    return "\n".join([HEAD, where, "", *rows, "", NOTES.read_text()])


def _bench(row: str) -> str:
    """The bench that a line of the table is about, "bench" for its head; empty for other lines."""
    return row[2:].partition(" |")[0] if row.startswith("| ") else ""


def _row(found: Result) -> str:
    spread = {key: " / ".join(f"{value:g}" for value in values) for key, values in found["spread"].items()}
    sign = "≤" if found["stretch"] <= found["goal"] else "≥"
    bound = "" if found["bound"] == "ratio" else f" {found['unit']}"
    cells = (
        found["bench"], found["database"], found["what"], spread["ours"], spread["peer"], found["unit"],
        spread["ratio"], found["rounds"], f"{sign} {found['goal']:g}{bound}", f"{sign} {found['stretch']:g}{bound}",
        found["reached"],
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"
