"""What a measured run works with, loaded through AGENTOPS_TOOLS: one tool without an effect on anything, one script.

A turn is one request and one call with about 1 KB of text; no two calls are equal, so no limit of repeats is met.
"""

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
        self.left -= 1
        if self.left < 0:
            return [{"type": "tool_use", "name": "finish", "input": {"answer": "done", "evidence": []}}]
        return [{"type": "tool_use", "name": "keep_note", "input": {"number": self.left}}]


def keep_note(ctx: Context, *, number: int) -> Outcome:
    """Do nothing, as fast as possible, and say so at length."""
    return Outcome(kind=Kind.OK, source="notes", version="1", effect_ref=f"N-{number}", data=TEXT)


steady = Script()
TOOLS = (tool(keep_note, effect=Effect.KEYED, risk=Risk.LOW, retention=DAY),)
SCRIPTS = {"steady": steady}
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
)
