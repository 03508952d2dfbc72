"""Real processes, real servers, real cuts: then everything is healed, and what happened is compared with the ledger.

``make chaos`` plays every cell `TRIALS` times and writes docs/faults.md; ``make chaos SHORT=1`` plays a few.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import work
from tests.chaos.cells import CELLS, Cell
from tests.chaos.yard import Yard, yard
from tests.stack import ROOT

SHORT, TRIALS = bool(os.environ.get("CHAOS_SHORT")), int(os.environ.get("CHAOS_TRIALS", "1") or 1)
ONLY = os.environ.get("CHAOS_ONLY", "")
BOUND = 90.0
ZERO = ("lost", "duplicated", "stuck", "stale", "unintended")
results: list[dict[str, Any]] = []


@pytest.fixture(scope="module")
def place() -> Iterator[Yard]:
    # not pytest's folder: the database's own user must get through
    with (
        tempfile.TemporaryDirectory(prefix="agentops-chaos-", ignore_cleanup_errors=True) as folder,
        yard(Path(folder)) as made,
    ):
        people = work.People(made)
        people.start()
        made.people = people  # type: ignore[attr-defined]
        yield made
        people.over.set()
        people.join(20)
        _keep()


def played() -> list[Cell]:
    return [c for c in CELLS if (not SHORT or c.short) and ONLY in f"{c.fault} {c.where}"]


@pytest.mark.parametrize("cell", played(), ids=lambda cell: f"{cell.fault} {cell.where}".replace(" ", "-"))
def test_nothing_is_lost_repeated_or_stuck(place: Yard, cell: Cell) -> None:
    row: dict[str, Any] = {"fault": cell.fault, "where": cell.where, "trials": 0, "fired": 0, "recover_ms": []}
    tally: Counter[str] = Counter()
    for _ in range(TRIALS):
        place.people.calm.clear()  # type: ignore[attr-defined]
        runs, fired = cell.play(place)
        healed = time.monotonic()
        place.people.calm.set()  # type: ignore[attr-defined]
        place.service("DELETE", "/admin/faults")
        while (left := work.open_runs(place, runs)) and time.monotonic() < healed + BOUND:
            time.sleep(0.1)
        row["recover_ms"].append(round((time.monotonic() - healed) * 1000))
        row["trials"] += 1
        row["fired"] += fired
        tally += work.judge(place, runs)
        tally["stuck"] += len(left)
    names = ("expected", "executed", *ZERO, "unknown_settled", "unknown_person", "unknown_wrong")
    results.append(row | {name: tally[name] for name in names})
    assert row["fired"], "not tested: the fault never fired"
    assert {name: tally[name] for name in ZERO} == dict.fromkeys(ZERO, 0), (left, _tails(place))


def test_every_chain_verifies_after_all_of_it(place: Yard) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "verify_audit"], cwd=ROOT, env=place.env("none"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _tails(place: Yard) -> str:
    return "\n".join(f"--- {name}\n{place._tail(name)[-1200:]}" for name in ("worker-1", "worker-2", "sweeper-1"))


def _keep() -> None:
    out = ROOT / "artifacts" / "proof" / "chaos.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    about = {"trials": TRIALS, "short": SHORT, "cells": len(results), "processors": os.cpu_count()}
    out.write_text(json.dumps({"suite": "chaos", "db": "postgresql", "about": about, "rows": results}, indent=1))
