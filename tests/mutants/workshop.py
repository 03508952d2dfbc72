"""Copies of the package in a temporary folder, patched, and the named tests run in them as anybody would run them."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from tests.mutants.table import Mutant, Patch
from tests.stack import ROOT, clean_environment


class NotExact(Exception):
    """The text of a patch does not stand exactly once where the table says: the table is out of date."""


Results = dict[str, str]  # test id -> "" if it passed, else what it died of


def copy_of_the_tree(to: Path) -> Path:
    """The files that git knows or would take in, and the installed packages beside them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to((ROOT / ".venv").resolve())
    return to


def mutated(pristine: Path, to: Path, patches: Iterable[Patch]) -> Path:
    """A copy of a copy, with bytecode and all, and the patches in it. Raises `NotExact`."""
    shutil.copytree(pristine, to, symlinks=True)
    for patch in patches:
        file = to / patch.file
        text = file.read_text()
        if (times := text.count(patch.old)) != 1:
            raise NotExact(f"{patch.file}: this stands there {times} times, not once: {patch.old}")
        file.write_text(text.replace(patch.old, patch.new))
    return to


def run_tests(tree: Path, tests: Iterable[str], seconds: int = 120) -> Results:
    """Run tests by id in a tree; what each came to. Raises `AssertionError` if pytest did not get to run them."""
    report = tree / f"report-{secrets.token_hex(4)}.xml"
    # xunit1 names the file of a test; a database of its own, for others run at the same time.
    options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=tree, env=_environment(), capture_output=True,
        text=True, stdin=subprocess.DEVNULL, timeout=seconds,
    )  # fmt: skip
    # 0: all passed, 1: some failed; everything else means that tests were not collected, or not run.
    assert done.returncode in (0, 1), (
        f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
    )
    return {_ident(case): _came_to(case) for case in ET.parse(report).getroot().iter("testcase")}


def _environment() -> dict[str, str]:
    env = clean_environment()
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, used by all copies
    env.pop("TEST_REDIS_URL", None)  # one Redis cannot be emptied by several at once
    if url := env.pop("TEST_DATABASE_URL", ""):
        env["TEST_DATABASE_URL"] = urlsplit(url)._replace(path=f"/mutant_{secrets.token_hex(4)}").geturl()
    return env


def _ident(case: ET.Element) -> str:
    """The id of a test as pytest takes it: file, class, name."""
    file, name = case.get("file", ""), case.get("name", "")
    inner = case.get("classname", "")[len(file.removesuffix(".py")) + 1 :]
    return "::".join(filter(None, (file, inner.replace(".", "::"), name)))


def _came_to(case: ET.Element) -> str:
    for kind in ("error", "failure", "skipped"):
        if (found := case.find(kind)) is not None:
            return f"{'' if kind == 'failure' else kind + ': '}{found.get('message') or kind}"
    return ""


def of(results: Results, test: str) -> Results:
    """The results of a test, or of all its cases if it has parameters."""
    return {name: came_to for name, came_to in results.items() if name == test or name.startswith(f"{test}[")}


def survived(mutant: Mutant, results: Results) -> list[str]:
    """Why a mutant does not count as killed: tests that were not run, passed, or died of something else."""
    reasons = []
    for test in mutant.tests:
        found = of(results, test)
        reasons += [] if found else [f"{test} was not run"]
        for name, came_to in found.items():
            if not came_to:
                reasons.append(f"{name} passed")
            elif not re.match(mutant.dies_by, came_to):
                reasons.append(f"{name} did not see it, but died of: {came_to[:300]}")
    return reasons
