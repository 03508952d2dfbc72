"""Where the races are run: a database, racing processes, a ledger outside, and rows for the figures."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stack import ROOT, SHORT, clean_environment, fresh_postgres

RACERS = 20
PROOF = ROOT / "artifacts" / "proof"
Job = dict[str, Any]


class Answer(dict[str, Any]):
    """What came of a job: `status` as of HTTP, `result` or `message`."""

    @property
    def status(self) -> int:
        return int(self["status"])


def job(name: str, /, late: float = 0.0, clock: bool = False, **arguments: Any) -> Job:
    """A job; `late` are seconds after the start of the race."""
    return {"do": name, "with": arguments, "late": late, "clock": clock}


class Balance:
    """Who won last begins later, and later still if they win again: on no machine, however busy, is one order rare."""

    STEP, MOST = 0.001, 0.032

    def __init__(self, rng: random.Random) -> None:
        """Both begin together. `later` are the seconds by which the first side begins after the second."""
        self.random, self.later, self.step, self.last = rng, 0.0, self.STEP, True

    def starts(self) -> tuple[float, float]:
        """When the first and the second side begin, in seconds."""
        some, more = (self.random.uniform(0, 2 * self.STEP) for _ in range(2))
        return some + max(0.0, self.later), more + max(0.0, -self.later)

    def won(self, first: bool) -> None:
        """Say who won."""
        self.step = min(self.step * 2, self.MOST) if first == self.last else self.STEP
        self.later += self.step if first else -self.step
        self.last = first


@dataclass
class Course:
    """Racing processes on one database. `rows` become the proof."""

    db: str
    folder: Path
    env: dict[str, str]
    random: random.Random
    wires: list[Any] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    # --- processes ----------------------------------------------------------------------------------------------------
    @contextmanager
    def open(self) -> Iterator[Course]:
        """Make the tables, start the processes; end them afterwards."""
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env=self.env, check=True)
        pairs = [socket.socketpair() for _ in range(RACERS)]
        numbers = [there.fileno() for _, there in pairs]
        with (self.folder / "racers.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.races.racer", *map(str, numbers)], cwd=ROOT, env=self.env,
                pass_fds=numbers, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        try:
            for here, there in pairs:
                there.close()
                here.settimeout(120)
                self.wires.append(here.makefile("rw"))
                here.close()
            self.one("people", names=[f"operator-{n}" for n in range(RACERS)])
            yield self
        finally:
            for wire in self.wires:
                wire.close()
            process.wait(30)

    def race(self, *jobs: Job, gap: float = 0.004) -> list[Answer]:
        """All jobs at once, each in a process of its own; their answers in the order of the jobs."""
        assert len(jobs) <= len(self.wires)
        runners = self.random.sample(self.wires, len(jobs))  # nobody always stands at the same place
        at = time.monotonic() + gap + max(0.0, -min(one["late"] for one in jobs))
        for wire, one in zip(runners, jobs, strict=True):
            wire.write(json.dumps(one | {"at": at + one["late"]}) + "\n")
            wire.flush()
        answers = [Answer(json.loads(wire.readline())) for wire in runners]
        assert all(a.status != 500 for a in answers), next(a["message"] for a in answers if a.status == 500)
        return answers

    def everybody(self, name: str, **arguments: Any) -> None:
        """The same job in every process."""
        self.race(*(job(name, **arguments) for _ in self.wires))

    def one(self, name: str, /, **arguments: Any) -> Any:
        """A job that must succeed; its result."""
        (answer,) = self.race(job(name, **arguments), gap=0)
        assert answer.status == 200, answer
        return answer["result"]

    def prepared(self, name: str, n: int, **arguments: Any) -> list[dict[str, Any]]:
        """`n` runs made by four processes."""
        shares = [n // 4 + (k < n % 4) for k in range(4)]
        answers = self.race(*(job(name, n=share, **arguments) for share in shares if share))
        return [shown for answer in answers for shown in answer["result"]]

    def balance(self) -> Balance:
        """For a race of two sides."""
        return Balance(self.random)

    # --- witnesses ----------------------------------------------------------------------------------------------------
    def ledger(self) -> dict[str, list[dict[str, Any]]]:
        """Effects by key: what really happened."""
        found: dict[str, list[dict[str, Any]]] = {}
        path = Path(self.env["RACES_LEDGER"])
        for line in path.read_text().splitlines() if path.exists() else []:
            effect = json.loads(line)
            found.setdefault(effect["key"], []).append(effect)
        return found

    def seen(self, run: int) -> dict[str, Any]:
        """What is recorded about a run, whose record must verify."""
        found = dict(self.one("witness", run=run))
        assert found["faults"] == [], (run, found["faults"])
        return found

    def report(self, race: str, trials: int, winners: Counter[str], began: float, **more: Any) -> None:
        """Keep a row of figures: a race has one only if every trial held, so nothing in it happened twice.

        A race of which only one order was seen was not run.
        """
        assert len([name for name, times in winners.items() if times]) >= 2, (
            f"{race}: only one order was seen: {winners}"
        )
        seconds = round(time.monotonic() - began, 1)
        self.rows.append(
            {"race": race, "trials": trials, "winners": dict(winners), "double": 0, "seconds": seconds, **more}
        )

    def keep(self) -> None:
        """Write artifacts/proof/races-<db>.json."""
        PROOF.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"suite": "races", "db": self.db, "rows": self.rows}, indent=1)
        (PROOF / f"races-{self.db}.json").write_text(text + "\n")


def databases() -> list[str]:
    """SQLite, and PostgreSQL where the environment names a server."""
    return ["sqlite", *(["postgresql"] if os.environ.get("TEST_DATABASE_URL") else [])]


@contextmanager
def course(db: str, folder: Path, seed: int) -> Iterator[Course]:
    """A course on a database of its own."""
    env = clean_environment() | SHORT | {"AGENTOPS_LEASE": "15", "AGENTOPS_TOOLS": "tests.races.pack"}
    env |= {"AGENTOPS_VAR": str(folder / "var"), "RACES_LEDGER": str(folder / "ledger"), "DJANGO_LOG_LEVEL": "ERROR"}
    if db == "sqlite":
        with Course(db, folder, env, random.Random(seed)).open() as made:
            yield made
        return
    with fresh_postgres() as url:
        with Course(db, folder, env | {"DATABASE_URL": url}, random.Random(seed)).open() as made:
            yield made


def one_of(answers: Iterable[Answer], *names: str) -> str:
    """The name of the one answer that is 200; there must be exactly one."""
    won = [name for name, answer in zip(names, answers, strict=True) if answer.status == 200]
    assert len(won) == 1, f"{len(won)} winners: {won}"
    return won[0]
