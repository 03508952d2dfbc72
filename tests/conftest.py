"""Two ways to test: in this process on a database of its own, or through `stack`, the real processes.

The environment is set before Django's settings load, which pytest-django does after this file was read.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.stack import PASSWORD, SHORT, TOOLS, Stack, clean_environment, redis_pair

VAR = tempfile.mkdtemp(prefix="agentops-tests-")
atexit.register(shutil.rmtree, VAR, ignore_errors=True)


def _in_process_environment() -> None:
    for name in set(os.environ) - set(clean_environment()):
        del os.environ[name]  # a developer's own installation must not be touched by its tests
    os.environ |= SHORT | {"AGENTOPS_VAR": VAR, "AGENTOPS_TOOLS": TOOLS, "AGENTOPS_DEMO_PASSWORD": PASSWORD}
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentops.settings"
    if os.environ.get("TEST_DATABASE_URL"):
        os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
    if os.environ.get("TEST_REDIS_URL"):
        os.environ["CELERY_BROKER_URL"], os.environ["CHANNEL_REDIS_URL"] = redis_pair(0)


_in_process_environment()
settings.DATABASES


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One running installation for all story tests; a test that kills something leaves it running again."""
    installation = Stack(tmp_path_factory.mktemp("stack"))
    try:
        yield installation.start()
    finally:
        installation.close()


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Stack]:
    """A running installation for one test alone (frozen workers, other timings, damaged data)."""
    installation = Stack(tmp_path / "stack")
    try:
        yield installation.start()
    finally:
        installation.close()
