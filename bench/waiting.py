"""From a person's decision to the body of the tool, through real web and worker processes."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench import databases
from bench.turns import Result, result
from tests.stack import Stack, clean_environment, free_port, redis_pair, until

DECISIONS = 30


@contextmanager
def stack(distributed: bool) -> Iterator[Stack]:
    """A running installation with the tools of `bench.pack`: on PostgreSQL and Redis, or with nothing beside it."""
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        env = {"AGENTOPS_TOOLS": "demo,bench.pack", "AGENTOPS_LEASE": "15", "AGENTOPS_BEAT": "5"}
        with databases.fresh("postgresql" if distributed else "sqlite") as url:
            if distributed:
                os.environ["TEST_REDIS_URL"] = os.environ["REDIS_URL"]
                env["CELERY_BROKER_URL"], env["CHANNEL_REDIS_URL"] = redis_pair(3)
            installation = Stack(Path(folder) / "stack", **env, **({"DATABASE_URL": url} if url else {}))
            try:
                yield installation.start()
            finally:
                installation.close()


def decisions(installation: Stack, history: int, count: int = DECISIONS) -> list[float]:
    """Milliseconds from sending each approval to the first line of the tool that it allows."""
    starter, person = installation.signed_in("operator"), installation.signed_in("reviewer")
    form = {"goal": "Wait for people.", "input_history": str(history), "request_key": f"bench-{history}-{time.time()}"}
    answer = starter.post("/runs/new/waiter", form)
    assert answer.status_code == 302, answer.text[:300]
    run = int(answer.headers["Location"].rpartition("/")[2])
    taken = []
    sql = "SELECT id, digest FROM runs_approval WHERE run_id = %s AND status = 'pending'"
    for _ in range(count):
        asked = until(lambda: installation.sql(sql, (run,)), 120, "the run asks")[0]
        sent = time.time_ns()
        voted = person.post(f"/approvals/{asked['id']}/approve", {"digest": asked["digest"], "why": ""})
        assert voted.status_code == 302, voted.text[:300]
        began = until(lambda n=asked["id"]: _body_began(installation, run, n), 60, "the tool ran")
        taken.append((began - sent) / 1e6)
    return taken


def _body_began(installation: Stack, run: int, approval: int) -> int:
    """When the body of the tool began, as the tool says itself; 0 while its outcome is not recorded."""
    sql = (
        "SELECT e.payload FROM runs_event e JOIN runs_approval a ON a.run_id = e.run_id AND a.turn = e.turn "
        "WHERE e.kind = 'CallEnded' AND e.run_id = %s AND a.id = %s"
    )
    rows = installation.sql(sql, (run, approval))
    return int(json.loads(rows[0]["payload"])["data"]["began"]) if rows else 0


def noop(broker: str, *, backend: str = "", count: int = 60) -> list[float]:
    """Milliseconds of a no-op task: the round trip with a backend, else from `delay` to its body."""
    command = [sys.executable, "-m", "bench.peers.celery_noop", broker, backend or "none", str(count)]
    done = subprocess.run(command, cwd=databases.ROOT, stdout=subprocess.PIPE, text=True, env=clean_environment())
    if done.returncode:
        sys.exit(f"bench: the Celery no-op failed (exit {done.returncode})")
    return list(json.loads(done.stdout.splitlines()[-1]))


def ready(name: str) -> bool:
    """False, said on stderr, where there is no PostgreSQL or no Redis."""
    if "postgresql" in databases.kinds() and os.environ.get("REDIS_URL"):
        return True
    print(f"bench: {name} needs DATABASE_URL (PostgreSQL) and REDIS_URL", file=sys.stderr)
    return False


def _told(name: str, kind: str, ours: list[float], peer: list[float], **fields: Any) -> Result:
    ratios = [round(a / b, 3) for a, b in zip(ours, peer, strict=True)]
    return result(
        name, kind, what="p50", ours=round(median(ours), 2), peer=round(median(peer), 2), ratio=median(ratios),
        measured=median(ratios), unit="ms", rounds=len(ours), ratios=ratios, **fields,
    )  # fmt: skip


def approve_to_running_celery(turns: int, rounds: int) -> Iterator[Result]:
    """p50 from the approve POST to the next tool's body, over the round trip of a Celery no-op on the same Redis."""
    if not ready("approve_to_running_celery"):
        return
    ours, peer = [], []
    with stack(distributed=True) as installation:
        for _ in range(rounds):
            broker, backend = redis_pair(5)
            peer.append(median(noop(broker, backend=backend)))
            ours.append(median(decisions(installation, 0)))
    yield _told("approve_to_running_celery", "postgresql", ours, peer, goal=3, stretch=2)


def approve_history_flatness(turns: int, rounds: int) -> Iterator[Result]:
    """The same after 1,000 turns of history, over none."""
    if not ready("approve_history_flatness"):
        return
    long, short = [], []
    with stack(distributed=True) as installation:
        for _ in range(rounds):
            short.append(median(decisions(installation, 0)))
            long.append(median(decisions(installation, min(turns, 1000))))
    yield _told("approve_history_flatness", "postgresql", long, short, goal=1.5, stretch=1.2)


def embedded_approve_to_running(turns: int, rounds: int) -> Iterator[Result]:
    """Without Redis: approve to body, over a Celery no-op on kombu's filesystem transport as it comes (1 s poll)."""
    ours, peer = [], []
    with stack(distributed=False) as installation, tempfile.TemporaryDirectory(prefix="agentops-bench-") as folder:
        for number in itertools.islice(itertools.count(), rounds):
            ours.append(median(decisions(installation, 0)))
            peer.append(median(noop(f"filesystem:{folder}/{number}", count=12)))
    yield _told("embedded_approve_to_running", "sqlite", ours, peer, goal=0.05, stretch=0.02)


__all__ = ["approve_history_flatness", "approve_to_running_celery", "embedded_approve_to_running", "free_port"]
