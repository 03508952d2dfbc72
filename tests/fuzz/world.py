"""A world in one thread: workers, people, a remote and a clock, moved by a seed.

The journal, the runner, the actions and the tools are the real ones, on a real database. What is ours is who moves
when: a worker does one step of its loop, its flights take off and land in virtual time, a kill is an exception that
nothing catches, and a frozen worker is one that nobody moves for a while: between two steps, or in the middle of one
(at any place where it could be killed), while the world goes on and perhaps takes its lease away.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

from django.db import connection

from runs.engine import machines
from runs.journal import faultpoint as points
from runs.journal import gate, lease
from runs.models import Approval, Call, Event, Question, Run
from runs.runner import flights, loop
from runs.runner.flights import Flight
from runs.runner.watch import watch
from tests.fuzz.clock import SECOND, Clock
from tests.fuzz.people import People
from tests.fuzz.remote import Remote

FOR_EVER = 2**62
# Where a run may rest without a lease and a due time, because a person must move it.
PERSONS = ("paused", *machines.RUN_STOPS)


class Killed(BaseException):
    """SIGKILL: no handler of ours may see it."""


class Air:
    """Takes the place of the thread pool: a flight takes off when its worker is moved, or at once if `eager`."""

    eager = False

    def __init__(self) -> None:
        self.taking_off: list[Any] = []

    def submit(self, fly: Any, landed: Any) -> None:
        """A runner's flight waits until its worker is moved; a look of a watch is over at once."""
        if isinstance(landed, Runway) and not self.eager:
            landed.worker.waiting.append(lambda: fly(landed))
        else:
            fly(landed)


class Runway:
    """Takes the place of the queue on which flights land; `get` lets virtual time pass."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.landing: list[tuple[int, Flight]] = []

    def put(self, flight: Flight) -> None:
        """The work is done; it is noticed at once, or after a while."""
        world = self.worker.world
        wait = world.dice.choice((0, 0, 0, 0.05, 0.4, 2.0)) if world.troubled else 0
        self.landing.append((world.clock.now + int(wait * SECOND), flight))

    def get(self, timeout: float = 0.1) -> Flight:
        """Take off what waits to, let time pass, and give the first that has landed."""
        world, end = self.worker.world, self.worker.world.clock.now + int(timeout * SECOND)
        while self.worker.waiting and not self.worker.grounded:
            self.worker.waiting.pop(0)()
        while True:
            for place in sorted(self.landing, key=lambda x: x[0]):
                if place[0] <= world.clock.now:
                    self.landing.remove(place)
                    return place[1]
            nexts = [at for at, _ in self.landing if at <= end]
            if world.clock.now >= end:
                raise Empty
            world.clock.advance(min([end, *nexts]) - world.clock.now)

    def get_nowait(self) -> Flight:
        """As `get`, without waiting."""
        ready = [place for place in self.landing if place[0] <= self.worker.world.clock.now]
        if not ready:
            raise Empty
        self.landing.remove(ready[0])
        return ready[0][1]


@dataclass(eq=False)
class Worker:
    """One process with a claimed run. `policy` is what it has cached, `skew` how wrong its host's clock is."""

    world: World
    run: Run
    name: str
    runner: Any = None
    waiting: list[Any] = field(default_factory=list)
    frozen_until: int = 0
    grounded: bool = False  # what it launched does not take off: frozen right before
    policy: Any = None
    skew: int = 0
    over: bool = False
    appending: bool = False

    def move(self) -> None:
        """One step of its loop; after the last it hands in what it still has."""
        with self.world.inside(self):
            with loop.stopping(self.run):
                alive = False
                try:
                    alive = self.runner.step()
                finally:
                    if not alive and not self.world.dying:
                        self.over = True
                        self.runner.hand_in()


class World:
    """Everything of one scenario. `trace` is what happened, in order: the same seed gives the same trace."""

    def __init__(self, seed: str, clock: Clock, remote: Remote, people: People, kill_at: int = 0) -> None:
        self.seed, self.dice, self.clock, self.remote, self.people = seed, random.Random(seed), clock, remote, people
        self.kill_at, self.passed = kill_at, 0
        self.stand_still = 0.02  # how often a worker stops in mid-step, at each place
        self.depth = len(connection.savepoint_ids)  # inside of more, the world could not go on: a row is locked
        self.workers: list[Worker] = []
        self.mover: str = ""
        self.moving: Worker | None = None
        self.meanwhile = False
        self.trace: list[str] = []
        self.points: dict[str, int] = {}
        self.killed: list[str] = []
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.wrong: list[str] = []  # what was seen on the way and must not be
        self.orphans: dict[int, int] = {}  # run -> when the worker that held it was killed
        self.recovered: list[int] = []  # virtual ms from there to the next claim
        self.last: dict[int, tuple[Any, ...]] = {}
        self.troubled, self.dying = True, False
        self.runs: list[int] = []
        self.numbers: dict[str, int] = {}

    # --- what can be killed -------------------------------------------------------------------------------------------
    def point(self, name: str) -> None:
        """The product passed a place where a process may die; whoever moves dies if it is the chosen one."""
        self.points[name] = self.points.get(name, 0) + 1
        self.passed += bool(self.mover)
        self.trace.append(f"{self.mover}@{name}")
        outermost = len(connection.savepoint_ids) <= self.depth
        if self.moving and outermost:
            self._fenced(self.moving, name)
        if self.passed == self.kill_at and self.mover:
            self.killed.append(name)
            self.dying = True
            if self.moving:
                self.orphans.setdefault(self.moving.run.pk, self.clock.now)
            raise Killed(name)
        if self.moving and outermost and self.troubled and not self.meanwhile and self.dice.random() < self.stand_still:
            self.go_on_without(self.moving, name)

    def _fenced(self, worker: Worker, name: str) -> None:
        """No append of a worker is taken after another has claimed its run, nor one on an old policy."""
        if name == "before_append":
            self.counts["append refused"] += worker.appending  # the one before did not come to its end
            worker.appending = True
        elif name == "after_append":
            worker.appending = False
            if (epoch := Run.objects.values_list("epoch", flat=True).get(pk=worker.run.pk)) != worker.run.epoch:
                self.wrong.append(f"stale: {worker.name} appended in epoch {worker.run.epoch}, the run is in {epoch}")

    def go_on_without(self, worker: Worker, name: str) -> None:
        """A process stands still in the middle of a step, while time passes and others move."""
        kept = self.mover, self.moving, gate._cached, self.clock.skew, worker.frozen_until
        self.meanwhile, worker.frozen_until = True, FOR_EVER
        self.counts["frozen in mid-step"] += 1
        self.say(f"{worker.name} stands still at {name}")
        gate._cached, self.clock.skew = None, 0
        self.clock.advance(int(self.dice.choice((0, 0.3, 2, 2, 20)) * SECOND))
        for _ in range(self.dice.randint(1, 6)):
            self.tick()
        self.mover, self.moving, gate._cached, self.clock.skew, worker.frozen_until = kept
        self.meanwhile = False
        self.say(f"{worker.name} goes on at {name}")

    def inside(self, worker: Worker) -> Any:
        """What a process has for itself: its cached policy and its clock."""
        return _Inside(self, worker)

    def alive(self) -> list[Worker]:
        """Workers that are neither gone nor frozen."""
        self.workers = [w for w in self.workers if not w.over]
        return [w for w in self.workers if w.frozen_until <= self.clock.now]

    # --- what moves ---------------------------------------------------------------------------------------------------
    def say(self, what: str) -> None:
        """Into the trace."""
        self.trace.append(what)

    def move(self, worker: Worker) -> None:
        """Move a worker; it may die."""
        if self.by(worker.name, worker.move, worker):
            worker.over = True

    def by(self, name: str, do: Callable[[], object], worker: Worker | None = None) -> bool:
        """Let somebody do something, in a process that may die of it; True if it did."""
        self.mover, self.moving = name, worker
        try:
            do()
        except Killed:
            self.dying = False
            self.say(f"{name} killed")
            return True
        finally:
            self.mover, self.moving = "", None
        return False

    def claim(self, run: int, skew: int | None = None) -> Worker | None:
        """A message says "look at run X", early, late or once more; the worker claims it if it can."""
        number = self.numbers["worker"] = self.numbers.get("worker", 0) + 1
        held = any(not w.over and w.run.pk == run for w in self.workers)
        wrong = self.dice.choice((0, 0, -90, 600)) if skew is None else skew
        worker = Worker(self, None, f"w{number}", skew=wrong * SECOND)  # type: ignore[arg-type]
        with self.inside(worker):
            claimed = lease.claim(run)
        if claimed is None:
            self.counts["claim lost"] += 1
            return None
        worker.run, wrong = claimed
        self.counts["claim won"] += 1
        self.counts["take-over"] += held
        if run in self.orphans:
            self.recovered.append((self.clock.now - self.orphans.pop(run)) // 1000)
        self.say(f"{worker.name} claims {self.runs.index(run)}")
        self.by(worker.name, lambda: self._begin(worker, wrong), worker)
        if worker.runner is None:
            return None
        self.workers.append(worker)
        return worker

    def _begin(self, worker: Worker, skew: int) -> None:
        with self.inside(worker), loop.stopping(worker.run):
            self.point("after_claim")
            worker.runner = loop.begin(worker.run, skew)
            worker.runner.landed = Runway(worker)

    def act(self) -> None:
        """Somebody does something, in a process of their own that may die."""
        self.by("person", lambda: self.say(self.people.act(self)))

    def look_again(self) -> None:
        """The looks that are due, by whoever takes the message; twice, as messages may come twice."""
        for place in lease.looks():
            for _ in range(self.dice.choice((1, 2))):
                self.by("watch", lambda place=place: watch(*place))  # type: ignore[misc]

    def tick(self) -> None:
        """One move of the world."""
        alive, dice = self.alive(), self.dice
        roll = dice.random()
        if alive and roll < 0.55:
            worker = dice.choice(alive)
            if dice.random() < 0.03:
                worker.frozen_until = self.clock.now + int(dice.choice((0.5, 4, 40)) * SECOND)
                self.counts["frozen between steps"] += 1
                self.say(f"{worker.name} frozen")
                return
            self.move(worker)
        elif roll < 0.75:
            self.claim(dice.choice(self.runs))
        elif roll < 0.9:
            self.act()
        elif roll < 0.93:
            self.look_again()
        else:
            self.clock.advance(int(dice.choice((0.01, 0.3, 1, 5, 70)) * SECOND))

    def look(self) -> None:
        """What holds at every moment; what does not is kept for the judge."""
        for run in Run.objects.filter(pk__in=self.runs):
            name, now = self.runs.index(run.pk), (run.status, run.epoch, run.seq)
            self.statuses[run.status] += 1
            was = self.last.get(run.pk, now)
            self.last[run.pk] = now
            if was[0] in machines.RUN_ENDS and run.status != was[0]:
                self.wrong.append(f"run {name} was {was[0]} and became {run.status}")
            if run.epoch < was[1] or run.seq < was[2]:
                self.wrong.append(f"run {name} went back from {was} to {now}")
            if run.ended or run.due_at is not None or run.status in PERSONS:
                continue
            asked = Approval.objects.filter(run=run, status="pending").exists()
            if not asked and not Question.objects.filter(run=run, status="open").exists():
                self.wrong.append(f"stuck: run {name} is {run.status}, without a due time, and waits for nobody")

    def ended(self) -> bool:
        """True when every run has."""
        return not Run.objects.filter(pk__in=self.runs).exclude(status__in=machines.RUN_ENDS).exists()

    # --- after the trouble --------------------------------------------------------------------------------------------
    def heal(self, moves: int = 3000) -> bool:
        """Liveness: no more faults; everybody does their work. False if something is stuck."""
        self.troubled, self.remote.rate, self.kill_at = False, 0.0, 0
        return self.come_to_rest(moves)

    def come_to_rest(self, moves: int = 3000) -> bool:
        """Everybody does their work until all runs have ended; True if they do within so many moves."""
        for _ in range(moves):
            if self.ended():
                return True
            moved = False
            self.look()
            for worker in self.alive():
                self.move(worker)
                moved = True
            for run in lease.due():
                moved = self.claim(run) is not None or moved
            self.look_again()
            if not moved and not self._helped():
                self.clock.advance(self._until_due())
        return False

    def _helped(self) -> bool:
        """Whether people did something that waited for them, or died of it."""
        helped: list[bool] = []
        return self.by("person", lambda: helped.append(self.people.help(self))) or helped[0]

    def _until_due(self) -> int:
        """Time until the next thing that happens by itself."""
        later = list(Run.objects.filter(pk__in=self.runs, due_at__isnull=False).values_list("due_at", flat=True))
        later += [w.frozen_until for w in self.workers]
        return max(
            1, min([at for at in later if at > self.clock.now], default=self.clock.now + SECOND) - self.clock.now
        )

    def outlive(self) -> None:
        """Let everything that hangs on its way arrive, and every look at a presumed verdict be taken."""
        for _ in range(6):
            self.clock.advance(100_000 * SECOND // 4)
            for worker in self.alive():
                self.move(worker)
            for run in lease.due():
                worker = self.claim(run)
                while worker and not worker.over:
                    self.move(worker)
            self.look_again()

    def key_of(self, effect: dict[str, Any]) -> str:
        """The operation key that an effect belongs to; a message carries none, so its text names its call."""
        if effect["key"] or effect["kind"] != "message":
            return str(effect["key"])
        text, calls = self.remote.text_of(effect["object"]), Call.objects.filter(run__in=self.runs, tool="send_message")
        same = [c for c in calls if c.values() == {"order_id": effect["order_id"], "text": text}]
        begun = [c for c in same if c.started_at and c.started_at <= effect["at"]]
        return str(max(begun, key=lambda c: c.started_at or 0).key) if begun else ""

    def digest(self) -> str:
        """The trace and the record in one number."""
        record = (
            Event.objects.filter(run__in=self.runs)
            .order_by("run_id", "seq")
            .values_list("kind", "turn", "ordinal", "at")
        )
        return hashlib.sha256(repr([self.trace, list(record)]).encode()).hexdigest()


class _Inside:
    def __init__(self, world: World, worker: Worker) -> None:
        self.world, self.worker = world, worker

    def __enter__(self) -> None:
        gate._cached, self.world.clock.skew = self.worker.policy, self.worker.skew

    def __exit__(self, *_: object) -> None:
        self.worker.policy, gate._cached, self.world.clock.skew = gate._cached, None, 0


@contextmanager
def playing(world: World) -> Iterator[World]:
    """Let the product's places and flights belong to this world."""
    threads, flights.AIR, points.listener = flights.AIR, Air(), world.point  # type: ignore[assignment]
    try:
        yield world
    finally:
        flights.AIR, points.listener = threads, None
