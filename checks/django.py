"""Django's own checks, in an installation as strict as production, made for the moment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def deploy(root: Path) -> list[str]:
    """`check --deploy` with an https origin; a warning fails."""
    return _manage(root, "check", "--deploy", "--fail-level", "WARNING")


def migrations(root: Path) -> list[str]:
    """Models and migrations agree."""
    return _manage(root, "makemigrations", "--check", "--dry-run")


def templates(root: Path) -> list[str]:
    """Every template compiles, with every tag and partial that it names."""
    return _python(root, "-m", "checks.templates")


def _manage(root: Path, *args: str) -> list[str]:
    return _python(root, "manage.py", *args)


def _python(root: Path, *args: str) -> list[str]:
    with tempfile.TemporaryDirectory() as var:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTOPS_", "DATABASE_URL"))}
        env |= {"AGENTOPS_VAR": var, "AGENTOPS_ORIGIN": "https://agents.example.org", "AGENTOPS_TOOLS": "demo"}
        done = subprocess.run([sys.executable, *args], cwd=root, env=env, capture_output=True, text=True)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-30:]
