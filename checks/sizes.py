"""Small enough to follow: functions, modules, and the spine as a whole."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from checks.files import CODE, parsed, python_files

FUNCTION, MODULE = 40, 400
SPINE = ("runs/engine", "runs/journal", "runs/runner", "runs/actions", "runs/models")
# What watches over processes and over the record as a whole, what admins set for later (policies, groups, prices), how
# pages look, and one act on many runs, which does each through the acts that are counted: no run moves by it.
BESIDE = (
    "runs/models/health.py", "runs/models/record.py", "runs/actions/safe_mode.py",
    "runs/models/preferences.py", "runs/actions/preferences.py",
    "runs/models/bulk.py", "runs/actions/bulk.py",
    "runs/models/views.py", "runs/actions/views.py",
    "runs/models/access.py", "runs/actions/people.py", "runs/actions/policies.py",
    "runs/models/catalogue.py", "runs/actions/catalogue.py",
)  # fmt: skip
SPINE_GOAL, SPINE_LIMIT = 2500, 3425
EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Def = ast.FunctionDef | ast.AsyncFunctionDef


def too_big(root: Path) -> list[str]:
    """Functions over 40 lines and modules over 400; tests and migrations are free."""
    problems = []
    for path in python_files(root, *CODE):
        name = path.relative_to(root)
        lines = len(path.read_text().splitlines())
        if lines > MODULE:
            problems.append(f"{name}: {lines} lines, at most {MODULE}: split it by what changes together")
        for node in ast.walk(parsed(path)):
            if isinstance(node, Def) and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION:
                problems.append(f"{name}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION}")
    return problems


def spine(root: Path) -> dict[str, int]:
    """Lines of code of each part of the spine: non-blank, without comments, docstrings and migrations."""
    beside = {root / name for name in BESIDE}
    return {
        part: sum(code_lines(path.read_text()) for path in python_files(root, part) if path not in beside)
        for part in SPINE
    }


def spine_too_big(root: Path) -> list[str]:
    """The count is printed each time, so that growth is seen before it is a problem."""
    parts = {name: count for name, count in spine(root).items() if count}
    total = sum(parts.values())
    print(f"spine: {total} lines (goal {SPINE_GOAL}, limit {SPINE_LIMIT}): {parts}")
    return (
        [f"the spine has {total} lines, at most {SPINE_LIMIT}: simplify before adding"] if total > SPINE_LIMIT else []
    )


def code_lines(source: str) -> int:
    """Lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | Def) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)
