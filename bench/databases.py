"""Fresh databases for measured processes; those of an installation are never touched."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.stack import redis_pair

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-bench" / "bin" / "python"  # what the peers need, apart from what we need
OURS = ("AGENTOPS_", "CELERY_BROKER_URL", "CHANNEL_REDIS_URL", "PORT")


def kinds() -> list[str]:
    """SQLite always; PostgreSQL if DATABASE_URL names a server on which we may create databases."""
    given = urlsplit(os.environ.get("DATABASE_URL", "")).scheme
    return ["sqlite", "postgresql"] if given in ("postgres", "postgresql") else ["sqlite"]


def run(kind: str, *arguments: str) -> list[dict[str, Any]]:
    """What `python -m bench.run` prints with these arguments, in a fresh data folder and a fresh database."""
    with tempfile.TemporaryDirectory(prefix="agentops-bench-") as var, fresh(kind) as url:
        env = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
        env |= {"AGENTOPS_VAR": var, "AGENTOPS_TOOLS": "bench.pack", "DATABASE_URL": url}
        env |= _redis() if kind == "postgresql" else {}
        env |= {"AGENTOPS_LOG_LEVEL": "WARNING", "DJANGO_SETTINGS_MODULE": "agentops.settings"}
        done = subprocess.run(
            [sys.executable, "-m", "bench.run", *arguments], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(f"bench: the measured process failed on {kind} (exit {done.returncode})")
        return list(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def fresh(kind: str) -> Iterator[str]:
    """The URL of an empty database, dropped afterwards; of SQLite "", which is a file in the data folder."""
    if kind == "sqlite":
        yield ""
        return
    server = os.environ["DATABASE_URL"]
    name = f"bench_{os.getpid()}_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


def _redis() -> dict[str, str]:
    """Hints go through Redis where there is one, as they do on an installation with PostgreSQL."""
    if not os.environ.get("TEST_REDIS_URL"):
        return {}
    broker, layer = redis_pair(4)
    return {"CELERY_BROKER_URL": broker, "CHANNEL_REDIS_URL": layer}
