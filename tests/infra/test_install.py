"""A bare machine is told in one line what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.stack import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-e2e.lock", "bench/requirements.lock")


def make(tmp_path: Path, target: str, *programs: str) -> subprocess.CompletedProcess[str]:
    for name in ("make", "sh", *programs):
        (tmp_path / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    env = {"PATH": str(tmp_path)}
    return subprocess.run([tmp_path / "make", "-C", ROOT, target], env=env, capture_output=True, text=True)


@pytest.mark.parametrize(("missing", "there"), [("python3", ("git",)), ("git", ("python3",))])
def test_a_missing_program_is_named(tmp_path: Path, missing: str, there: tuple[str, ...]) -> None:
    done = make(tmp_path, "setup", *there)
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if line.startswith("agentops:")]
    assert len(ours) == 1 and f"{missing} is missing: apt-get install" in ours[0]


def test_a_missing_chromium_fails_loudly(tmp_path: Path) -> None:
    done = make(tmp_path, "e2e", "python3", "git")
    assert done.returncode != 0 and "chromium is missing: apt-get install chromium" in done.stderr


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    copy = tmp_path / "scripts"
    copy.mkdir()
    shutil.copy(ROOT / "scripts" / "install.py", copy)
    (tmp_path / "requirements.lock").write_text("")
    python = shutil.which("python3") or "python3"
    env = {"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, "scripts/install.py", LOCKS[0]], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "agentops: python3-venv is missing: apt-get install python3-venv\n"


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_files_hold_hashes_and_no_places(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert not any(word in text for word in ("://", "--index", "--find-links", "--no-binary", " @ "))
    blocks = [line for line in text.splitlines() if line and line[0].isalnum()]
    assert blocks and all("==" in line and line.endswith("\\") for line in blocks)


def test_each_lock_file_holds_the_one_before_it() -> None:
    pins = [{line.split()[0] for line in (ROOT / lock).read_text().splitlines() if "==" in line} for lock in LOCKS]
    pins = [{pin for pin in found if pin[0].isalnum()} for found in pins]
    assert pins[0] <= pins[1] <= pins[2], json.dumps([sorted(pins[0] - pins[1]), sorted(pins[1] - pins[2])])
