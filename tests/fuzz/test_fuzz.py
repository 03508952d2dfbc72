"""Whatever happens in whatever order: no effect without an intent, none twice, none denied, nothing stuck.

``make fuzz SEEDS=n FIRST=n`` plays more; ``make fuzz SEED=x`` plays one again. A scenario is played twice: without a
kill, which records the places where a process may die, and then with a kill at one of these places.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tests.stack import ROOT

if TYPE_CHECKING:
    from tests.fuzz.oracle import Seen
    from tests.fuzz.world import World

pytestmark = pytest.mark.django_db
FIRST, SEEDS = int(os.environ.get("FUZZ_FIRST", "1")), int(os.environ.get("FUZZ_SEEDS", "100"))
ONLY, KILL = os.environ.get("FUZZ_SEED", ""), int(os.environ.get("FUZZ_KILL", "") or 0)
FIRST_FAILURE = bool(os.environ.get("FUZZ_STOP"))  # for `python -m tests.fuzz.bites`
COVERING = 100  # from so many seeds on, everything that can happen must have happened
TICKS = 90
STORIES = ("pickup-soon", "messenger", "two-effects")  # and "refund", below
Scenario = Callable[..., AbstractContextManager[Any]]


@dataclass
class Batch:
    """What a number of scenarios came to. It goes on after a failure, so that the figures are of the whole batch."""

    scenario: Scenario
    seen: Seen
    failures: list[str] = field(default_factory=list)
    played: int = 0

    def play(self, seed: str, kill_at: int = 0) -> int:
        """One scenario from trouble to rest; returns how many places it passed. `story-x` is a story without faults."""
        from tests.fuzz.corners import CORNERS
        from tests.fuzz.oracle import judge

        kind, _, name = seed.partition("-")
        corners = {corner.__name__: (corner, agent) for corner, agent in CORNERS.items()}
        self.played += 1
        agent = {"story": name, "corner": corners.get(name, ("", ""))[1]}.get(kind, "")
        with self.scenario(seed, kill_at, agent=agent) as world:
            try:
                if kind == "story":
                    assert world.come_to_rest(), "stuck"
                elif kind == "corner":
                    corners[name][0](world)
                for _ in range(0 if agent else TICKS):
                    world.tick()
                    world.look()
                passed = int(world.passed)
                world.wrong += [] if world.heal() else [f"stuck: {stuck(world)}"]
                world.outlive()
                judge(world, self.seen)
            except Exception as error:
                self._failed(world, seed, kill_at, error)
                passed = int(world.passed)
            return passed

    def _failed(self, world: World, seed: str, kill_at: int, error: Exception) -> None:
        again = f"make fuzz SEED={seed}" + (f" KILL={kill_at}" if kill_at else "")
        tail = "\n".join(world.trace[-int(os.environ.get("FUZZ_TAIL", "40")) :])
        text = f"scenario {self.played}, seed {seed}: {type(error).__name__}: {error}\nplay it again: {again}\n{tail}"
        self.failures.append(text)
        sys.stdout.write(f"\n{text}\n")
        if FIRST_FAILURE:
            self.end()

    def end(self) -> None:
        """Fail with what went wrong."""
        if self.failures:
            pytest.fail(f"{len(self.failures)} scenarios failed:\n" + "\n\n".join(self.failures[:3]), pytrace=False)


def stuck(world: World) -> list[Any]:
    from runs.models import Run

    rows = Run.objects.filter(pk__in=world.runs)
    return [(world.runs.index(r.pk), r.status, r.due_at, r.lease_until, r.state) for r in rows]


@pytest.fixture
def batch(scenario: Scenario) -> Batch:
    """Scenarios of one test."""
    from tests.fuzz.oracle import Seen

    return Batch(scenario, Seen())


def test_whatever_happens_no_effect_is_lost_repeated_or_denied_and_nothing_is_stuck(batch: Batch) -> None:
    from tests.fuzz.corners import CORNERS

    if ONLY:
        batch.play(ONLY, KILL)
        batch.end()
        return
    began = time.perf_counter()
    for number in range(FIRST, FIRST + SEEDS):
        passed = batch.play(str(number))
        if passed:
            batch.play(str(number), random.Random(f"kill {number}").randint(1, passed))
    for corner in CORNERS:
        batch.play(f"corner-{corner.__name__}")
    for agent in STORIES:
        _killed_everywhere(batch, f"story-{agent}")
    report(batch.seen, time.perf_counter() - began)
    batch.end()
    if SEEDS >= COVERING:
        assert batch.seen.missing() == [], f"not tested, because it never happened: {batch.seen.missing()}"


def _killed_everywhere(batch: Batch, story: str) -> None:
    """What chance leaves out: the trace of a story in which nothing goes wrong, and a kill at every index of it."""
    for kill_at in range(1, batch.play(story) + 1):
        batch.play(story, kill_at)


def report(seen: Seen, seconds: float) -> None:
    """The figures, for docs/faults.md. Times to recover are virtual: from a kill to the next claim of its run."""
    from tests.fuzz.oracle import FIGURES

    calls = {name: n for name, n in sorted(seen.figures.items()) if name not in FIGURES}
    figures = {name: seen.figures[name] for name in FIGURES}
    kills = sum(seen.killed.values())
    sys.stdout.write(f"\n{seen.scenarios} scenarios in {seconds:.0f} s, {kills} kills, {figures}\n{calls}\n")
    rows = [
        {"fault": fault, "where": where, "trials": row.trials, "fired": row.fired}
        | {name: row.figures[name] for name in FIGURES}
        | {"recover_ms": row.recover_ms or None}
        for (fault, where), row in sorted(seen.rows.items())
    ]
    about = {
        "seconds": round(seconds), "kills": kills, "takeovers": seen.told["take-over"],
        "frozen": seen.told["frozen between steps"] + seen.told["frozen in mid-step"],
        "scenarios": seen.scenarios, "calls": calls, "kinds": dict(seen.kinds),
        "statuses": dict(seen.statuses), "stops": dict(seen.reasons), "told": dict(seen.told),
        "recover_ms": "virtual time from a kill to the next claim of its run",
    }  # fmt: skip
    out = ROOT / "artifacts" / "proof" / f"fuzz-{connection.vendor}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"suite": "fuzz", "db": connection.vendor, "about": about, "rows": rows}, indent=1))


def test_the_same_seed_is_the_same_story(scenario: Scenario) -> None:
    digests = []
    for _ in range(2):
        with scenario("again", kill_at=25) as world:
            for _ in range(TICKS):
                world.tick()
            digests.append(world.digest())
    assert digests[0] == digests[1]


def test_a_refund_that_meets_no_other_fault_happens_once_wherever_its_worker_dies(scenario: Scenario) -> None:
    """A key makes a kill harmless: at each place the run still succeeds, with one effect."""
    from runs.models import Run

    kill_at, passed, came_to = 0, 1, Counter[tuple[str, int]]()
    while kill_at <= passed:
        with scenario("a refund", kill_at, agent="refund") as world:
            assert world.come_to_rest()
            passed = passed if kill_at else world.passed
            came_to[Run.objects.get(pk=world.runs[0]).status, len(world.remote.effects())] += 1
            assert bool(world.killed) == bool(kill_at)
        kill_at += 1
    assert set(came_to) == {("succeeded", 1)}, came_to
