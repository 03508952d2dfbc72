"""Durable turns, recovery and bytes against LangGraph and DBOS: the same PostgreSQL, rounds taken in turns."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from bench import databases
from bench.report import Result, result
from bench.turns import LONG, SHORT

HELP = "bench: {} is missing: `make bench` installs it from bench/requirements.lock"
LANGGRAPH, DBOS = ("langgraph", "langgraph-checkpoint-postgres"), ("dbos",)


def peer(program: str, *arguments: str) -> float:
    """Seconds that a program of `bench.peers` took, in a fresh database of the same server."""
    if not databases.PEERS.exists():
        sys.exit(HELP.format(databases.PEERS.relative_to(databases.ROOT)))
    with databases.fresh("postgresql") as url:
        command = [str(databases.PEERS), "-m", f"bench.peers.{program}", url, *arguments]
        done = subprocess.run(command, cwd=databases.ROOT, stdout=subprocess.PIPE, text=True, env=_bare())
    if done.returncode:
        sys.exit(f"bench: {program} failed (exit {done.returncode})")
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _bare() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DBOS", "LANG"))}


def needs_postgresql(name: str) -> bool:
    """False, said on stderr, where there is no server to compare on."""
    if "postgresql" in databases.kinds():
        return True
    print(f"bench: {name} needs DATABASE_URL to name a PostgreSQL server", file=sys.stderr)
    return False


def _durable(
    name: str, turns: int, rounds: int, goal: float, stretch: float, program: tuple[str, ...], against: tuple[str, ...]
) -> Iterator[Result]:
    """Turns a second of a whole run, over those of a peer that does as much: a model call and a tool call a turn.

    Both from before the start to after the end, processes and schemas made beforehand, models that answer at once.
    """
    if not needs_postgresql(name):
        return
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(turns / peer(program[0], str(turns), *program[1:]))
        (run,) = databases.run("postgresql", "--bare", str(turns))
        ours.append(turns / run["seconds"])
    yield result(
        name, "postgresql", what=f"{turns} turns", unit="turns/s", ours=ours, peer=theirs, goal=goal, stretch=stretch,
        against=against,
    )  # fmt: skip


def durable_turns_langgraph_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against LangGraph as documented: PostgresSaver, `sync`, the message list in state."""
    name = "durable_turns_langgraph_pg_1000"
    yield from _durable(name, min(turns, 1000), rounds, 6, 15, ("langgraph_turns",), LANGGRAPH)


def durable_turns_langgraph_pg_200(turns: int, rounds: int) -> Iterator[Result]:
    """The same over 200 turns, where its lists are short."""
    name = "durable_turns_langgraph_pg_200"
    yield from _durable(name, min(turns, 200), rounds, 2, 5, ("langgraph_turns",), LANGGRAPH)


def durable_turns_langgraph_delta_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against LangGraph with the beta channel that stores only what is new: the fair peer."""
    name = "durable_turns_langgraph_delta_pg_1000"
    yield from _durable(name, min(turns, 1000), rounds, 1.2, 3, ("langgraph_turns", "--delta"), LANGGRAPH)


def durable_turns_dbos_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against DBOS: one workflow, two steps a turn."""
    yield from _durable("durable_turns_dbos_pg_1000", min(turns, 1000), rounds, 1.5, 4, ("dbos_turns",), DBOS)


def recovery_dbos_1000(turns: int, rounds: int) -> Iterator[Result]:
    """From the claim of a run whose process died after 1,000 turns to its next question, over DBOS' recovery."""
    name, length = "recovery_dbos_1000", min(turns, 1000)
    if not needs_postgresql(name):
        return
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(1000 * peer("dbos_turns", str(length), "--recover"))
        ours.append(1000 * databases.run("postgresql", "--bare", "--recover", str(length))[0]["recovery"])
    yield result(
        name, "postgresql", what=f"after {length} turns", unit="ms", ours=ours, peer=theirs, goal=0.125, stretch=0.04,
        against=DBOS,
    )  # fmt: skip


def wal_per_turn(turns: int, rounds: int) -> Iterator[Result]:
    """Bytes of write-ahead log of a turn with 1 KB of text, start and end taken out by two lengths.

    The peer is the floor of two raw commits with 1 KB each; goal and stretch bound the bytes themselves. The log is
    the whole server's: what others write meanwhile is counted too.
    """
    if not needs_postgresql("wal_per_turn"):
        return
    ours, floors = [], []
    for _ in range(rounds):
        short, long = databases.run("postgresql", "--floor", str(SHORT), str(LONG))
        ours.append((long["wal"] - short["wal"]) / (LONG - SHORT))
        floors.append((long["floor_wal"] - short["floor_wal"]) / (LONG - SHORT))
    yield result(
        "wal_per_turn", "postgresql", what="WAL", unit="bytes/turn", ours=ours, peer=floors, goal=4096, stretch=2560,
        bound="ours",
    )  # fmt: skip
