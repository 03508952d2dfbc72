"""Durable turns of DBOS on PostgreSQL: `python -m bench.peers.dbos_turns URL TURNS [--recover]`.

One workflow, two steps (model, tool) a turn, a tool result of about 1 KB as with the others. With ``--recover`` the
workflow dies after its turns, in this very process, and what is timed is its recovery: from the claim to its next new
step. Prints {"turns", "seconds"}.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from dbos import DBOS, SetWorkflowID

TEXT = "The quick brown fox jumps over the lazy dog. " * 22
reached = threading.Event()
marks: dict[str, float] = {}


@DBOS.step()
def model(number: int) -> dict[str, Any]:
    """What a model would propose."""
    return {"id": f"toolu_{number}", "name": "keep_note", "args": {"number": number}}


@DBOS.step()
def tool(number: int) -> str:
    """What the tool returns."""
    return TEXT


@DBOS.step()
def fresh() -> str:
    """The first step that is not in the record: a process that is to die dies here."""
    marks["fresh"] = time.perf_counter()
    if os.environ.get("BENCH_DIE"):
        os._exit(0)
    reached.set()
    return "new"


@DBOS.workflow()
def agent(turns: int) -> str:
    """All turns, then one more step."""
    marks.setdefault("body", time.perf_counter())
    for number in range(turns):
        proposed = model(number)
        tool(proposed["args"]["number"])
    return fresh()


def launch(url: str) -> None:
    """One executor over the given database."""
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()


def main() -> None:
    """Run once, print how long it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("turns", type=int)
    parser.add_argument("--recover", action="store_true")
    given = parser.parse_args()
    if given.recover and not os.environ.get("BENCH_RECOVERS"):
        dies = os.environ | {"BENCH_DIE": "1"}
        subprocess.run(
            [sys.executable, "-m", "bench.peers.dbos_turns", given.url, str(given.turns)], env=dies, check=True
        )
        os.environ["BENCH_RECOVERS"] = "1"
        launch(given.url)
        reached.wait(120)
        seconds = marks["fresh"] - marks["body"]
    else:
        launch(given.url)
        began = time.perf_counter()
        with SetWorkflowID(uuid.uuid4().hex):
            agent(given.turns)
        seconds = time.perf_counter() - began
    print(json.dumps({"turns": given.turns, "seconds": seconds}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
