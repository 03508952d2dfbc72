"""One measured process: `python -m bench.run TURNS...` runs that many turns, once per number, in a fresh database.

The environment names database and data folder (see `bench.databases`). Prints a JSON list with one object a run.
``--bare`` lets a model answer that checks nothing, as those of the peers; ``--floor`` measures the floor of as many
turns after each run, so that both meet the same noise; ``--profile FILE`` keeps a cProfile of the thread that advances
the run.
"""

import argparse
import cProfile
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import django

django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from agentops.celery import settle_down  # noqa: E402  # hints go where the settings say; a worker is measured
from bench import floor  # noqa: E402
from bench.pack import steady  # noqa: E402
from runs.actions.runs import start_run  # noqa: E402
from runs.journal.lease import now  # noqa: E402
from runs.models import AgentVersion, Policy, Run  # noqa: E402
from runs.providers import PROVIDERS  # noqa: E402
from runs.providers.base import Answer  # noqa: E402
from runs.providers.scripted import Scripted, answer, identified  # noqa: E402
from runs.runner import advance  # noqa: E402

MANY = 1_000_000_000
NOT_A_QUERY = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")


class Timed(Scripted):
    """The scripted provider with a clock: what it spends stands for the model and is no cost of the host."""

    spent: list[tuple[float, float]] = []

    def complete(self, *args: Any) -> Answer:
        """As the scripted one."""
        wall, processor = time.perf_counter(), time.thread_time()
        try:
            return super().complete(*args)
        finally:
            Timed.spent.append((time.perf_counter() - wall, time.thread_time() - processor))


class Bare(Timed):
    """A model that answers at once and does not check what it is sent, as the peers' models: all time is the host's."""

    def complete(self, request: Any, *args: Any) -> Answer:
        """The script's word, nothing else."""
        said = self.scripts[request.model.partition(":")[2]](request.messages)
        return answer(identified(said, len(request.messages)))


PROVIDERS["timed"] = Timed


class Counter:
    """Counts statements and durable commits of this process's connection while it is open."""

    def __init__(self) -> None:
        """Nothing counted yet."""
        self.queries = self.commits = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens inside."""
        connection.ensure_connection()
        sqlite = connection.vendor == "sqlite"
        before = 0 if sqlite else _transactions()
        if sqlite:
            connection.connection.set_trace_callback(self._traced)
        with connection.execute_wrapper(self._executed):
            yield
        self.commits += 0 if sqlite else _transactions() - before

    def _traced(self, statement: str) -> None:
        self.commits += statement.upper().startswith("COMMIT")

    def _executed(self, execute: Any, sql: str, params: Any, many: bool, context: Mapping[str, Any]) -> Any:
        self.queries += not sql.upper().startswith(NOT_A_QUERY)
        return execute(sql, params, many, context)


def _transactions() -> int:
    """Writing transactions of a PostgreSQL server so far: readers are given no number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])


def prepare() -> User:
    """Schema, a policy that allows the tool, the agent and a person."""
    call_command("migrate", verbosity=0)
    floor.make()
    Policy.objects.create(number=1, content={"defaults": {"keep_note": "allow"}}, current=True, at=now())
    call_command("seed", verbosity=0)
    person = User.objects.create_user("bench")
    person.groups.add(Group.objects.get(name="operator"))
    return person


def measured(person: User, turns: int) -> dict[str, Any]:
    """Start a run of `turns` turns with the limits lifted, advance it to its end, and say what it took."""
    steady.begin(turns)
    gc.collect()
    Timed.spent = []
    limits = {"turns": turns + 1, "calls": turns + 1, "ms": MANY}
    version = AgentVersion.objects.get(agent__slug="steady")
    began = time.perf_counter()
    run = start_run(starter=person, agent_version=version, goal="Be measured.", limits=limits)
    counter, wal = Counter(), _wal()
    with counter.counting():
        while not run.ended:
            before = run.seq
            advance(run.pk)
            run.refresh_from_db()
            if run.seq == before:
                raise SystemExit(f"bench: the run stands still at {run.status}: {run.state}")
        seconds = time.perf_counter() - began
    if run.status != "succeeded":
        raise SystemExit(f"bench: the run ended as {run.status}: {Run.objects.get(pk=run.pk).state}")
    return {
        "turns": turns, "marks": steady.marks, "provider": Timed.spent, "queries": counter.queries,
        "commits": counter.commits, "state_bytes": len(run.state), "wal": _wal() - wal,
        "seconds": seconds,
    }  # fmt: skip


def _wal() -> int:
    """Bytes that a PostgreSQL server has written to its log so far; 0 on a file database."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
        return int(cursor.fetchone()[0])


def recovered(turns: int) -> dict[str, Any]:
    """Let a process die with its question in the air after `turns` turns; what is timed is claim to next question."""
    dies = os.environ | {"BENCH_DIE": "1"}
    subprocess.run([sys.executable, "-m", "bench.run", "--bare", str(turns)], env=dies, check=True)
    run = Run.objects.get()
    Run.objects.filter(pk=run.pk).update(lease_until=1, due_at=1)  # its lease has lapsed: the wait is no work
    steady.begin(0)
    connection.ensure_connection()
    gc.collect()
    began = time.perf_counter()
    advance(run.pk)
    run.refresh_from_db()
    if run.status != "succeeded":
        raise SystemExit(f"bench: the recovered run ended as {run.status}")
    return {"turns": turns, "recovery": steady.marks[0][0] - began}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.run")
    parser.add_argument("turns", type=int, nargs="+")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--recover", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--profile", default="")
    given = parser.parse_args()
    if given.bare:
        PROVIDERS["timed"] = Bare
    if given.recover:
        print(json.dumps([recovered(turns) for turns in given.turns]))
        return
    person = prepare()
    settle_down()
    profile = cProfile.Profile() if given.profile else None
    results = []
    for turns in given.turns:
        with profile or nullcontext():
            results.append(measured(person, turns))
        if given.floor:
            wal = _wal()
            results[-1]["floor"] = floor.seconds(turns)
            results[-1]["floor_wal"] = _wal() - wal
    if profile:
        profile.dump_stats(given.profile)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
