"""The page's package and its test are taken from the page and run, so that the page cannot be wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

from runs.providers.scripted import MISBEHAVIOURS
from tests.stack import ROOT, clean_environment

PAGE = (ROOT / "docs" / "bring-your-own.md").read_text()
PACKAGE, TEST = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_package_of_the_page_passes_the_test_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "letters.py").write_text(PACKAGE)
    (tmp_path / "test_letters.py").write_text(TEST)
    env = clean_environment() | {
        "AGENTOPS_TOOLS": "letters", "DJANGO_SETTINGS_MODULE": "agentops.settings",
        "AGENTOPS_VAR": str(tmp_path / "var"), "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_letters.py")]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_package_of_the_page_comes_through_the_public_door_alone() -> None:
    ours = set(re.findall(r"^from ((?:runs|agentops)[\w.]*) import", PACKAGE, re.MULTILINE))
    assert ours == {"runs.engine.toolspec", "runs.tools.base"}


def test_the_page_names_every_kind_of_bad_answer() -> None:
    assert all(f"`{kind}`" in PAGE or f'"{kind}"' in PAGE for kind in MISBEHAVIOURS)
