"""Whatever happens in whatever order: no effect without an intent, none twice, none denied, nothing stuck.

``make fuzz SEEDS=n FIRST=n`` plays more; ``make fuzz SEED=n`` plays one again. A scenario is played twice: without a
kill, which records the places where a process may die, and then with a kill at one of these places.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tests.stack import ROOT

if TYPE_CHECKING:
    from tests.fuzz.oracle import Seen
    from tests.fuzz.world import World

pytestmark = pytest.mark.django_db
FIRST, SEEDS = int(os.environ.get("FUZZ_FIRST", "1")), int(os.environ.get("FUZZ_SEEDS", "150"))
ONLY = os.environ.get("FUZZ_SEED", "")
TICKS = 90
Scenario = Callable[..., AbstractContextManager[Any]]


def play(scenario: Scenario, seed: str, seen: Seen, kill_at: int = 0) -> int:
    """One scenario from trouble to rest; how many places it passed. A failure says how to see it again."""
    from tests.fuzz.oracle import judge

    with scenario(seed, kill_at=kill_at) as world:
        try:
            for _ in range(TICKS):
                world.tick()
            passed = world.passed
            assert world.heal(), f"stuck: {stuck(world)}"
            world.outlive()
            judge(world, seen)
        except Exception as error:
            tail = "\n".join(world.trace[-40:])
            place = f" KILL={kill_at}" if kill_at else ""
            again = f"play it again: make fuzz SEED={seed}{place}"
            pytest.fail(f"seed {seed}{place}: {type(error).__name__}: {error}\n{again}\n{tail}")
        return int(passed)


def stuck(world: World) -> list[Any]:
    from runs.models import Run

    rows = Run.objects.filter(pk__in=world.runs)
    return [(world.runs.index(r.pk), r.status, r.due_at, r.lease_until, r.state) for r in rows]


def test_whatever_happens_no_effect_is_lost_repeated_or_denied_and_nothing_is_stuck(scenario: Scenario) -> None:
    from tests.fuzz.corners import CORNERS
    from tests.fuzz.oracle import Seen, judge

    seen, began = Seen(), time.perf_counter()
    if ONLY:
        play(scenario, ONLY, seen, int(os.environ.get("FUZZ_KILL", "0") or 0))
        return
    for number in range(FIRST, FIRST + SEEDS):
        seed = str(number)
        passed = play(scenario, seed, seen)
        if passed:
            play(scenario, seed, seen, random.Random(f"kill {seed}").randint(1, passed))
    for corner, agent in CORNERS.items():
        with scenario(corner.__name__, agent=agent) as world:
            corner(world)
            assert world.heal() and world.outlive() is None, corner.__name__
            judge(world, seen)
    report(seen, time.perf_counter() - began)
    if SEEDS >= 150:
        assert seen.missing() == [], f"not tested, because it never happened: {seen.missing()}"


def report(seen: Seen, seconds: float) -> None:
    """The figures, for docs/faults.md."""
    kills = sum(seen.killed.values())
    sys.stdout.write(f"\n{seen.scenarios} scenarios in {seconds:.0f} s, {kills} kills, {dict(seen.tally)}\n")
    zero = {"lost": 0, "duplicated": 0, "stuck": 0, "stale": 0, "recover_ms": None}
    settled = sum(n for name, n in seen.tally.items() if name.split()[0] in ("keyed", "lookup"))
    whole = {
        "fault": "everything at once", "where": "all points", "trials": seen.scenarios, "fired": seen.scenarios,
        "expected": seen.tally["effects"], "executed": seen.tally["effects"], "unknown_settled": settled,
        "unknown_person": seen.tally["attested"], "unknown_wrong": seen.tally["wrong"], **zero,
    }  # fmt: skip
    plain = dict.fromkeys(("expected", "executed", "unknown_settled", "unknown_person", "unknown_wrong")) | zero
    rows = [whole]
    for name, n in sorted(seen.killed.items()):
        rows.append({"fault": "kill", "where": name, "trials": n, "fired": n} | plain)
    for name, n in sorted(seen.faults.items()):
        rows.append({"fault": f"remote: {name}", "where": "request", "trials": n, "fired": n} | plain)
    out = ROOT / "artifacts" / "proof" / f"fuzz-{connection.vendor}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    about = {"seconds": round(seconds), "kinds": dict(seen.kinds), "frozen": seen.tally["frozen"],
             "takeovers": seen.tally["takeovers"], "refused": {str(k): v for k, v in seen.refused.items()}}  # fmt: skip
    out.write_text(json.dumps({"suite": "fuzz", "db": connection.vendor, "about": about, "rows": rows}, indent=1))


def test_the_same_seed_is_the_same_story(scenario: Scenario) -> None:
    digests = []
    for _ in range(2):
        with scenario("again", kill_at=25) as world:
            for _ in range(TICKS):
                world.tick()
            digests.append(world.digest())
    assert digests[0] == digests[1]
