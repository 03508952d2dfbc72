"""Run all checks, or the ones named: `python -m checks sizes types`; `messages --write` updates catalogues."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from checks import banned, django, messages, sizes
from checks.files import ROOT


def tool(root: Path, *command: str) -> list[str]:
    """A tool of the environment; its output is the list of problems."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / command[0]), *command[1:]], cwd=root, capture_output=True, text=True
    )
    return [] if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()


CHECKS: dict[str, Callable[[Path], list[str]]] = {
    "types": lambda root: tool(root, "mypy"),
    "style": lambda root: tool(root, "ruff", "check", "--output-format", "concise"),
    "format": lambda root: tool(root, "ruff", "format", "--check"),
    "imports": lambda root: tool(root, "lint-imports"),
    "sizes": sizes.too_big,
    "spine": sizes.spine_too_big,
    "markup": banned.in_templates,
    "code": banned.in_code,
    "shortcuts": banned.in_tests,
    "templates": django.templates,
    "deploy": django.deploy,
    "migrations": django.migrations,
    "messages": messages.check,
}


def main(names: list[str]) -> int:
    """Run them two at a time (one of them is mostly mypy), report in order."""
    if "--write" in names:
        names.remove("--write")
        messages.write(ROOT)
    if unknown := set(names) - set(CHECKS):
        sys.exit(f"checks: unknown {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    chosen = {name: check for name, check in CHECKS.items() if name in names or not names}
    with ThreadPoolExecutor(2) as pool:
        results = {name: pool.submit(timed, partial(check, ROOT)) for name, check in chosen.items()}
    failed = 0
    for name, result in results.items():
        problems, seconds = result.result()
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok':<7}{name:<12}{seconds:5.1f} s")
        for problem in problems:
            print(f"    {problem}")
    print(f"{len(chosen) - failed} of {len(chosen)} checks passed")
    return 1 if failed else 0


def timed(check: Callable[[], list[str]]) -> tuple[list[str], float]:
    """Problems and seconds."""
    begin = time.monotonic()
    return check(), time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
