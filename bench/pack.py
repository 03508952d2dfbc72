"""What a measured run works with, loaded through AGENTOPS_TOOLS: one tool without an effect on anything, one script.

A turn is one request and one call with about 1 KB of text; no two calls are equal, so no limit of repeats is met.
"""

import os
import re
import time
from typing import Any

from runs.engine.toolspec import Effect, Risk
from runs.tools.base import Context, Kind, Outcome, tool

TEXT = "The quick brown fox jumps over the lazy dog. " * 22  # 990 characters
DAY = 86_400


class Script:
    """Propose `left` calls, then finish; `marks` are the times at which it was asked: (wall, processor) seconds."""

    def __init__(self) -> None:
        """Nothing to do yet."""
        self.left = 0
        self.marks: list[tuple[float, float]] = []

    def begin(self, turns: int) -> None:
        """Get ready for a run of this many turns."""
        self.left, self.marks = turns, []

    def __call__(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The next call, or the end."""
        self.marks.append((time.perf_counter(), time.process_time()))
        if self.left == 0 and os.environ.get("BENCH_DIE"):
            os._exit(0)  # a process that dies with a question to the model in the air
        self.left -= 1
        if self.left < 0:
            return [{"type": "tool_use", "name": "finish", "input": {"answer": "done", "evidence": []}}]
        return [{"type": "tool_use", "name": "keep_note", "input": {"number": self.left}}]


def keep_note(ctx: Context, *, number: int) -> Outcome:
    """Do nothing, as fast as possible, and say so at length."""
    return Outcome(kind=Kind.OK, source="notes", version="1", effect_ref=f"N-{number}", data=TEXT)


def waiter(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`history` notes, then one question to people after the other. A pure function of the conversation."""
    opening = str(messages[0]["content"])
    earlier = re.search(r"goes on from (\d+) earlier turns", opening)
    number = (int(earlier[1]) if earlier else 0) + sum(message["role"] == "assistant" for message in messages)
    history = re.search(r'name="history"[^>]*>(\d+)<', opening)
    tool = "mild_note" if number < int(history[1] if history else 0) else "risky_note"
    return [{"type": "tool_use", "name": tool, "input": {"number": number}}]


def mild_note(ctx: Context, *, number: int) -> Outcome:
    """As `keep_note`, but nobody needs to be asked."""
    return keep_note(ctx, number=number)


def risky_note(ctx: Context, *, number: int) -> Outcome:
    """Say when it began."""
    return Outcome(kind=Kind.OK, source="notes", version="1", effect_ref=f"N-{number}", data={"began": time.time_ns()})


steady = Script()
TOOLS = (
    tool(keep_note, effect=Effect.KEYED, risk=Risk.LOW, retention=DAY),
    tool(mild_note, effect=Effect.REPEATABLE, risk=Risk.LOW),
    tool(risky_note, effect=Effect.KEYED, risk=Risk.HIGH, retention=DAY),
)
SCRIPTS = {"steady": steady, "waiter": waiter}
AGENTS = (
    {
        "slug": "steady",
        "name": "Steady",
        "description": "For measurements.",
        "instructions": "Play the script.",
        "model": "timed:steady",
        "tools": ["keep_note"],
        "inputs": [],
        "facts": {},
        "limits": {},
        "acceptance": [],
        "autonomy": "supervised",
    },
    {
        "slug": "waiter",
        "name": "Waiter",
        "description": "For measurements: asks people.",
        "instructions": "Play the script.",
        "model": "scripted:waiter",
        "tools": ["mild_note", "risky_note"],
        "inputs": [{"name": "history", "label": "History", "trusted": True, "required": True, "example": "0"}],
        "facts": {},
        "limits": {"turns": 100_000, "calls": 100_000, "ms": 1_000_000_000},
        "acceptance": [],
        "autonomy": "supervised",
    },
)
