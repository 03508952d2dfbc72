"""Which files are ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("agentops", "runs", "demo", "checks", "bench", "scripts")


def python_files(root: Path, *folders: str) -> Iterator[Path]:
    """Our modules below these folders, or the modules of these names; without migrations."""
    for folder in folders:
        module = (root / folder).with_suffix(".py")
        found = [module] if module.is_file() else sorted((root / folder).rglob("*.py"))
        yield from (path for path in found if "migrations" not in path.parts)


def template_files(root: Path) -> list[Path]:
    """All templates, of the project and of its packages."""
    return sorted(path for path in root.rglob("templates/**/*.*") if path.is_file() and not _foreign(path, root))


def _foreign(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    return parts[0].startswith(".") or parts[0] in ("var", "artifacts") or path.name.startswith(".")


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(), filename=str(path))
