"""What the runs of a race are made of: one tool whose effects stand in a ledger outside, a model that calls it once.

Named in AGENTOPS_TOOLS of the racing processes.
"""

from __future__ import annotations

import json
import os
from typing import Any

from runs.engine.toolspec import Effect
from runs.tools.base import Context, Kind, Outcome, tool


def poke(ctx: Context, *, times: int) -> Outcome:
    """Do something that cannot be taken back. The ledger is a file; one short append to it is whole or not there."""
    line = json.dumps({"key": ctx.key, "times": times, "pid": os.getpid()}) + "\n"
    ledger = os.open(os.environ["RACES_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, line.encode())
    finally:
        os.close(ledger)
    return Outcome(kind=Kind.OK, data={"poked": times})


def once(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Poke, then end."""
    if len(messages) == 1:
        return [{"type": "tool_use", "name": "poke", "input": {"times": 2}}]
    return [{"type": "tool_use", "name": "give_up", "input": {"reason": "that was all"}}]


TOOLS = (tool(poke, effect=Effect.OPAQUE),)
SCRIPTS = {"once": once}
AGENTS: tuple[dict[str, Any], ...] = ()
