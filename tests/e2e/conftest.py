"""Browser tests run with the system's Chromium, in a pytest process of their own.

(Synchronous Playwright leaves a running loop in the main thread, in which async tests fail.)
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.stack import ROOT


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The installed Chromium; its own background calls would only wait for a network that is not there."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.exit("chromium is missing: apt-get install chromium, or name one in CHROMIUM", returncode=1)
    args = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    if os.geteuid() == 0:
        args.append("--no-sandbox")
    return {**browser_type_launch_args, "executable_path": found, "args": args}


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots are left for people to look at (not under version control)."""
    folder = ROOT / "artifacts"
    folder.mkdir(exist_ok=True)
    return folder
