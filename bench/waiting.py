"""From a person's decision to the body of the tool, through real web and worker processes."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench import databases
from bench.report import Result, result
from tests.stack import Stack, clean_environment, redis_pair, until

DECISIONS, TASKS, POLLED = 30, 60, 16
PENDING = "SELECT id, digest FROM runs_approval WHERE run_id = %s AND status = 'pending'"
ENDED = (
    "SELECT e.payload FROM runs_event e JOIN runs_approval a ON a.run_id = e.run_id AND a.turn = e.turn "
    "WHERE e.kind = 'CallEnded' AND e.run_id = %s AND a.id = %s"
)


@contextmanager
def stack(distributed: bool) -> Iterator[Stack]:
    """A running installation with the tools of `bench.pack`: on PostgreSQL and Redis, or with nothing beside it."""
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        env = {"AGENTOPS_TOOLS": "demo,bench.pack", "AGENTOPS_LEASE": "15", "AGENTOPS_BEAT": "5"}
        with databases.fresh("postgresql" if distributed else "sqlite") as url:
            if distributed:
                env["CELERY_BROKER_URL"], env["CHANNEL_REDIS_URL"] = redis_pair(3)
            installation = Stack(Path(folder) / "stack", **env, **({"DATABASE_URL": url} if url else {}))
            try:
                yield installation.start()
            finally:
                installation.close()


def few(turns: int, many: int) -> int:
    """So many samples, or a few where only short runs are wanted."""
    return min(many, 2 + turns // 20)


def decisions(installation: Stack, history: int, count: int) -> list[float]:
    """Milliseconds from sending each approval to the first line of the tool that it allows."""
    starter, person = installation.signed_in("operator"), installation.signed_in("reviewer")
    form = {"goal": "Wait for people.", "input_history": str(history), "request_key": f"bench-{history}-{time.time()}"}
    answer = starter.post("/runs/new/waiter", form)
    assert answer.status_code == 302, answer.text[:300]
    run = int(answer.headers["Location"].rpartition("/")[2])
    taken = []
    with reading(installation) as read:
        for _ in range(count):
            approval, digest = until(lambda: read(PENDING, (run,)), 120, "the run asks")
            sent = time.time_ns()
            voted = person.post(f"/approvals/{approval}/approve", {"digest": digest, "confirm": "risky_note"})
            assert voted.status_code == 302, voted.text[:300]
            (payload,) = until(lambda n=approval: read(ENDED, (run, n)), 60, "the tool ran")
            taken.append((json.loads(payload)["data"]["began"] - sent) / 1e6)
    return taken


@contextmanager
def reading(installation: Stack) -> Iterator[Callable[[str, tuple[int, ...]], Any]]:
    """Asks the database for one row, over one connection, so that looking takes little from what is measured."""
    if url := installation.env.get("DATABASE_URL"):
        with psycopg.connect(url, autocommit=True) as server:
            yield lambda sql, values: server.execute(sql.encode(), values).fetchone()
    else:
        with closing(sqlite3.connect(installation.var / "agentops.sqlite3", isolation_level=None)) as file:
            yield lambda sql, values: file.execute(sql.replace("%s", "?"), values).fetchone()


def noop(broker: str, *, backend: str = "", count: int) -> list[float]:
    """Milliseconds of a no-op task: the round trip with a backend, else from `delay` to its body."""
    command = [sys.executable, "-m", "bench.peers.celery_noop", broker, backend or "none", str(count)]
    done = subprocess.run(command, cwd=databases.ROOT, stdout=subprocess.PIPE, text=True, env=clean_environment())
    if done.returncode:
        sys.exit(f"bench: the Celery no-op failed (exit {done.returncode})")
    return list(json.loads(done.stdout.splitlines()[-1]))


def ready(name: str) -> bool:
    """False, said on stderr, where there is no PostgreSQL or no Redis."""
    if "postgresql" in databases.kinds() and os.environ.get("TEST_REDIS_URL"):
        return True
    print(f"bench: {name} needs DATABASE_URL (PostgreSQL) and TEST_REDIS_URL", file=sys.stderr)
    return False


def approve_to_running_celery(turns: int, rounds: int) -> Iterator[Result]:
    """p50 from the approve POST to the next tool's body, over the round trip of a Celery no-op on the same Redis."""
    if not ready("approve_to_running_celery"):
        return
    ours, peer = [], []
    with stack(distributed=True) as installation:
        for _ in range(rounds):
            broker, backend = redis_pair(5)
            peer.append(median(noop(broker, backend=backend, count=few(turns, TASKS))))
            ours.append(median(decisions(installation, 0, few(turns, DECISIONS))))
    yield result(
        "approve_to_running_celery", "postgresql", what="p50", unit="ms", ours=ours, peer=peer, goal=3, stretch=2,
        against=("celery",),
    )  # fmt: skip


def approve_history_flatness(turns: int, rounds: int) -> Iterator[Result]:
    """The same after 1,000 turns of history, over none."""
    if not ready("approve_history_flatness"):
        return
    long, short, history = [], [], min(turns, 1000)
    with stack(distributed=True) as installation:
        for _ in range(rounds):
            short.append(median(decisions(installation, 0, few(turns, DECISIONS))))
            long.append(median(decisions(installation, history, few(turns, DECISIONS))))
    yield result(
        "approve_history_flatness", "postgresql", what=f"p50, {history} turns over 0", unit="ms", ours=long, peer=short,
        goal=1.5, stretch=1.2,
    )  # fmt: skip


def embedded_approve_to_running(turns: int, rounds: int) -> Iterator[Result]:
    """Without Redis: approve to body, over a Celery no-op on kombu's filesystem transport as it comes (1 s poll)."""
    ours, peer = [], []
    with stack(distributed=False) as installation, tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        for number in range(rounds):
            ours.append(median(decisions(installation, 0, few(turns, DECISIONS))))
            peer.append(median(noop(f"filesystem:{folder}/{number}", count=few(turns, POLLED))))
    yield result(
        "embedded_approve_to_running", "sqlite", what="p50", unit="ms", ours=ours, peer=peer, goal=0.05, stretch=0.02,
        against=("celery",),
    )  # fmt: skip
