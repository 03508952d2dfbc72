"""Tools of a workshop, for cards that the order service has no use for: a changed file, a command."""

from typing import Annotated, Any

from pydantic import Field

from runs.engine.toolspec import Risk
from runs.tools.base import Context, Kind, Outcome, Tool, tool

Line = Annotated[str, Field(min_length=1, max_length=200)]
Body = Annotated[str, Field(max_length=4000, description="The whole text of the file")]


def edit_file(ctx: Context, *, path: Line, before: Body, after: Body) -> Outcome:
    """Replace the text of a file that reads `before`."""
    return Outcome(kind=Kind.OK, source="workshop", status="edited", effect_ref=path, data={"path": path})


def run_command(ctx: Context, *, argv: list[str], folder: Line) -> Outcome:
    """Run a program with arguments; no shell reads them."""
    return Outcome(kind=Kind.OK, source="workshop", status="exit 0", data={"exit": 0})


BEFORE = "\n".join(
    ["def tax(net):", "    rate = 0.19", "    return round(net * rate)", "", "", "def total(net):", "    return net"]
)
CALLS: dict[str, dict[str, Any]] = {
    "edit_file": {
        "path": "billing/tax.py", "before": BEFORE,
        "after": BEFORE.replace("round(net * rate)", "round(net * rate, 2)").replace("return net\n", "return net"),
    },
    "run_command": {"argv": ["pytest", "-q", "tests/billing", "-k", "tax and not slow"], "folder": "/work/billing"},
}  # fmt: skip
TOOLS: tuple[Tool, ...] = (
    tool(
        edit_file,
        headline="Change {path}",
        objects=("file:{path}",),
        card={"kind": "diff", "path": "path", "before": "before", "after": "after"},
    ),
    tool(
        run_command,
        headline="Run a command in {folder}",
        risk=Risk.LOW,
        card={"kind": "command", "argv": "argv", "cwd": "folder", "consequence": "It runs in the sandbox of this run."},
    ),
)
