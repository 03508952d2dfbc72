"""Durable turns, recovery and bytes against LangGraph and DBOS: the same PostgreSQL, rounds taken in turns."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from bench import databases
from bench.turns import LONG, SHORT, Result, per_turn, result

PEERS = databases.ROOT / ".venv-bench" / "bin" / "python"
HELP = "bench: {} is missing: `make bench` installs it from bench/requirements.lock"


def peer(program: str, *arguments: str) -> float:
    """Seconds that a program of `bench.peers` took, in a fresh database of the same server."""
    if not PEERS.exists():
        sys.exit(HELP.format(PEERS.relative_to(databases.ROOT)))
    with databases.fresh("postgresql") as url:
        command = [str(PEERS), "-m", f"bench.peers.{program}", url, *arguments]
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


def _durable(name: str, turns: int, rounds: int, goal: float, stretch: float, *program: str) -> Iterator[Result]:
    """Turns a second of the whole loop, over those of a peer that does as much: a model call and a tool call a turn.

    What the scripted model spends on checking its conversation as a real API would is left out: the peers' models
    answer at once and check nothing.
    """
    if not needs_postgresql(name):
        return
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(turns / peer(program[0], str(turns), *program[1:]))
        (run,) = databases.run("postgresql", str(turns))
        ours.append(turns / sum(per_turn(run, 0, False)))
    ratios = [round(a / b, 2) for a, b in zip(ours, theirs, strict=True)]
    yield result(
        name, "postgresql", what="turns", goal=goal, stretch=stretch, ours=round(median(ours)),
        peer=round(median(theirs)), ratio=median(ratios), measured=median(ratios), unit="turns/s", rounds=rounds,
        ratios=ratios,
    )  # fmt: skip


def durable_turns_langgraph_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against LangGraph as documented: PostgresSaver, `sync`, the message list in state."""
    yield from _durable("durable_turns_langgraph_pg_1000", min(turns, 1000), rounds, 6, 15, "langgraph_turns")


def durable_turns_langgraph_pg_200(turns: int, rounds: int) -> Iterator[Result]:
    """The same over 200 turns, where its lists are short."""
    yield from _durable("durable_turns_langgraph_pg_200", min(turns, 200), rounds, 2, 5, "langgraph_turns")


def durable_turns_langgraph_delta_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against LangGraph with the beta channel that stores only what is new: the fair peer."""
    name = "durable_turns_langgraph_delta_pg_1000"
    yield from _durable(name, min(turns, 1000), rounds, 1.2, 3, "langgraph_turns", "--delta")


def durable_turns_dbos_pg_1000(turns: int, rounds: int) -> Iterator[Result]:
    """Against DBOS: one workflow, two steps a turn."""
    yield from _durable("durable_turns_dbos_pg_1000", min(turns, 1000), rounds, 1.5, 4, "dbos_turns")


def recovery_dbos_1000(turns: int, rounds: int) -> Iterator[Result]:
    """From the claim of a run whose process died after 1,000 turns to its next question, over DBOS' recovery."""
    name, length = "recovery_dbos_1000", min(turns, 1000)
    if not needs_postgresql(name):
        return
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(peer("dbos_turns", str(length), "--recover"))
        ours.append(databases.run("postgresql", "--recover", str(length))[0]["recovery"])
    ratios = [round(a / b, 4) for a, b in zip(ours, theirs, strict=True)]
    yield result(
        name, "postgresql", what="recovery", goal=0.125, stretch=0.04, ours=round(median(ours) * 1000, 1),
        peer=round(median(theirs) * 1000, 1), ratio=median(ratios), measured=median(ratios), unit="ms", rounds=rounds,
        ratios=ratios,
    )  # fmt: skip


def wal_per_turn(turns: int, rounds: int) -> Iterator[Result]:
    """Bytes of write-ahead log of a turn with 1 KB of text, start and end taken out by two lengths.

    The peer is the floor of two raw commits with 1 KB each; goal and stretch bound the bytes themselves.
    """
    if not needs_postgresql("wal_per_turn"):
        return
    ours, floors = [], []
    for _ in range(rounds):
        short, long = databases.run("postgresql", "--floor", str(SHORT), str(LONG))
        ours.append((long["wal"] - short["wal"]) / (LONG - SHORT))
        floors.append((long["floor_wal"] - short["floor_wal"]) / (LONG - SHORT))
    yield result(
        "wal_per_turn", "postgresql", what="WAL", goal=4096, stretch=2560, ours=round(median(ours)),
        peer=round(median(floors)), ratio=round(median(ours) / median(floors), 2), measured=median(ours),
        unit="bytes/turn", rounds=rounds, ratios=[round(a / b, 2) for a, b in zip(ours, floors, strict=True)],
    )  # fmt: skip
