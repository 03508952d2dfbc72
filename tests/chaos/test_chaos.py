"""Real processes, real servers, real cuts: then everything is healed, and what happened is compared with the ledger.

``make chaos`` plays every cell and writes docs/faults.md; ``make chaos SHORT=1`` plays a few, for CI. KILLS is the
number of processes that die at each place, TRIALS how often every other cell is played. The kill matrix of
``tests/faults`` (``TEST_CHAOS_ROUNDS=n``) is the same idea inside `make test`, on both databases.
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
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import oracle, work
from tests.chaos.cells import Cell, cells
from tests.chaos.yard import Yard, yard
from tests.stack import ROOT

SHORT = bool(os.environ.get("CHAOS_SHORT"))
ONLY = os.environ.get("CHAOS_ONLY", "")
TRIALS = int(os.environ.get("CHAOS_TRIALS") or 1)
KILLS = int(os.environ.get("CHAOS_KILLS") or (2 if SHORT or ONLY else 10))
BOUND, WATCH = 90.0, 20.0
ZERO = ("lost", "duplicated", "stuck", "stale", "unintended", "false", "unseen", "ahead")
FIGURES = (
    "runs", "events", "expected", "executed", *ZERO, "late", "unknown_settled", "unknown_person", "unknown_wrong",
)  # fmt: skip
results: list[dict[str, Any]] = []


@pytest.fixture(scope="module")
def place() -> Iterator[Yard]:
    # not pytest's folder: the database's own user must get through
    with (
        tempfile.TemporaryDirectory(prefix="agentops-chaos-", ignore_cleanup_errors=True) as folder,
        yard(Path(folder)) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def people(place: Yard) -> Iterator[work.People]:
    crowd = work.People(place)
    crowd.start()
    yield crowd
    crowd.over.set()
    crowd.join(20)


def played() -> list[Cell]:
    return [c for c in cells(KILLS) if (not SHORT or c.short) and ONLY in f"{c.fault} {c.where}"]


@pytest.mark.parametrize("cell", played(), ids=lambda cell: f"{cell.fault} {cell.where}".replace(" ", "-"))
def test_nothing_is_lost_repeated_or_stuck(place: Yard, people: work.People, cell: Cell) -> None:
    row: dict[str, Any] = {"fault": cell.fault, "where": cell.where, "trials": 0, "fired": 0, "recover_ms": []}
    tally: Counter[str] = Counter()
    for _ in range(TRIALS):
        people.calm.clear()
        place.whole()
        runs, fired = cell.play(place)
        people.calm.set()
        place.service("DELETE", "/admin/faults")
        left = recover(place, runs, row["recover_ms"])
        row["trials"] += 1
        row["fired"] += fired
        tally += oracle.judge(place, runs, set(people.confirmed))
        tally["stuck"] += len(left)
    results.append(row | {name: tally[name] for name in FIGURES})
    keep(place)
    assert row["fired"], "not tested: the fault never fired"
    zero = ZERO if cell.late else (*ZERO, "late")
    assert {name: tally[name] for name in zero} == dict.fromkeys(zero, 0), (left, tails(place))
    assert tally["expected"], "nothing was at stake"


def recover(place: Yard, runs: list[int], times: list[int]) -> list[int]:
    """Wait until all runs have ended and the watch has looked; adds the ms that each took and returns the rest."""
    healed = time.monotonic()
    left = work.open_runs(place, runs)  # what had ended under the fault needed no recovery
    while time.monotonic() < healed + BOUND:
        still = work.open_runs(place, runs)
        times += [round((time.monotonic() - healed) * 1000)] * (len(left) - len(still))
        left = still
        if not left:
            break
        time.sleep(0.1)
    end = time.monotonic() + WATCH
    while time.monotonic() < end and oracle.unseen(place, runs):
        time.sleep(0.2)
    return left


def test_every_chain_verifies_after_all_of_it(place: Yard) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "verify_audit"], cwd=ROOT, env=place.env("none"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def tails(place: Yard) -> str:
    return "\n".join(f"--- {name}\n{place.tail(name)[-1200:]}" for name in ("worker-1", "worker-2", "sweeper-1"))


def keep(place: Yard) -> None:
    """After every cell, so that a run that is broken off has shown something; docs are written from whole runs only."""
    whole = not SHORT and not ONLY
    out = ROOT / "artifacts" / ("proof/chaos.json" if whole else "chaos-part.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    about = {"on": str(date.today()), "commit": commit.strip(), "processors": os.cpu_count()}
    about |= {"versions": place.versions(), "trials": TRIALS, "cells": len(results), "of": len(played())}
    done = {(row["fault"], row["where"]) for row in results}
    nothing: dict[str, Any] = {"trials": 0, "fired": 0, "recover_ms": []} | dict.fromkeys(FIGURES, 0)
    missing = [c for c in played() if (c.fault, c.where) not in done]
    rows = results + [{"fault": c.fault, "where": c.where} | nothing for c in missing]
    out.write_text(json.dumps({"suite": "chaos", "db": "postgresql", "about": about, "rows": rows}, indent=1))
