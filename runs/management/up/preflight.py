"""What must hold before anything starts; each refusal is one line that says what to do."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.exceptions import InconsistentMigrationHistory, NodeNotFoundError
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from agentops.layers import runtime_folder
from runs.checks import durability_fault
from runs.health import forget


class Refusal(Exception):
    """A reason not to start, written for the person who typed the command."""


def lock_data_folder(var: Path) -> IO[str]:
    """Hold the folder until this process ends; a killed process holds nothing, so no stale lock can be left."""
    try:
        file = os.fdopen(os.open(var / "up.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+")
    except OSError as error:
        raise Refusal(f"no permission to write in the data folder {var} ({error.strerror}); see AGENTOPS_VAR") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read().strip() or "unknown"
        raise Refusal(
            f"AgentOps already runs on the data folder {var} (process {holder}): "
            "stop it first, or name another folder in AGENTOPS_VAR"
        ) from None
    file.truncate(0)
    file.seek(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def port_is_free(host: str, port: int, patience: float = 2.0) -> None:
    """A port of a just-killed installation may need a moment; one that stays busy is somebody else's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until = time.monotonic() + patience
    while True:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise Refusal(
                        f"port {port} on {host} cannot be used ({error.strerror}): "
                        f"choose another one, for example PORT={port + 1 if port < 65535 else 8000} make up"
                    ) from None
        time.sleep(0.1)


def redis_answers(variable: str, url: str) -> None:
    """A configured but absent Redis is said now, not found out by a page that never updates."""
    if not url.startswith(("redis://", "rediss://")):
        return
    import redis  # a deployment without Redis never loads it

    try:
        redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3).ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise Refusal(
            f"{variable} names a Redis at {_place(url)} that does not answer ({_first_line(error)}): "
            "start it, correct the address, or unset the variable for the built-in way"
        ) from None


def broker_answers(url: str) -> None:
    """The same for RabbitMQ, through kombu."""
    if not url.startswith(("amqp://", "amqps://")):
        return
    from kombu import Connection

    try:
        with Connection(url, connect_timeout=3) as broker:
            broker.ensure_connection(max_retries=1, timeout=3)
    except Exception as error:
        raise Refusal(
            f"CELERY_BROKER_URL names a broker at {_place(url)} that does not answer ({_first_line(error)}): "
            "start it, correct the address, or unset the variable for the built-in way"
        ) from None


def database_answers() -> None:
    """One plain connection, outside the pool: the pool would hide the reason behind its own time-out."""
    if connection.vendor == "postgresql":
        import psycopg

        try:
            psycopg.connect(**connection.get_connection_params()).close()
        except (psycopg.Error, ImproperlyConfigured) as error:
            raise Refusal(
                f"DATABASE_URL: PostgreSQL refuses the connection ({_first_line(error)}): {_hint(error)}"
            ) from None
    try:
        connection.ensure_connection()
        fault = durability_fault()
    except DatabaseError as error:
        name = settings.DATABASES["default"]["NAME"]
        raise Refusal(
            f"DATABASE_URL: cannot open the database {name} ({_first_line(error)}): "
            "check the path, its permissions, and that it is a database of AgentOps"
        ) from None
    if fault:
        raise Refusal(fault)


def _hint(error: Exception) -> str:
    text = str(error)
    if "does not exist" in text and "database" in text:
        return "create the database (createdb NAME) or correct the name"
    if "authentication failed" in text or "no password" in text or "role" in text:
        return "correct user and password"
    return "start the server or correct host and port"


def migrate() -> None:
    """Bring the database to the code's state; one that is ahead of the code, or half-way, is not touched."""
    try:
        loader = MigrationLoader(connection)
        known = loader.migrated_apps
        ahead = sorted(
            key for key in loader.applied_migrations if key[0] in known and key not in loader.disk_migrations
        )
        if ahead:
            names = ", ".join(".".join(key) for key in ahead[:3])
            raise Refusal(
                f"the database is newer than this code (it has {names}; this is Django {django.get_version()}): "
                "install the newer version, or restore the backup made before it"
            )
        loader.check_consistent_history(connection)
        call_command("migrate", interactive=False, verbosity=0)
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except (InconsistentMigrationHistory, NodeNotFoundError, DatabaseError) as error:
        raise Refusal(
            f"the database is half-migrated ({_first_line(error)}): restore the backup made before the last upgrade, "
            "or finish it by hand with `manage.py migrate`"
        ) from None
    if pending:
        raise Refusal(f"the database is half-migrated: {pending[0][0]} is still pending; run `manage.py migrate`")


def clear_leftovers(var: Path) -> None:
    """What a killed installation left behind. We hold the lock, so none of it is in use; hints are found again."""
    try:
        sockets = list(runtime_folder(var).glob("*.sock"))
    except ImproperlyConfigured as error:
        raise Refusal(str(error)) from None
    table = var / "processes.json"
    with suppress(FileNotFoundError, ValueError):
        forget(json.loads(table.read_text()).values())
    for path in (table, *sockets):
        path.unlink(missing_ok=True)
    if settings.CELERY_BROKER_URL.startswith("filesystem"):
        for folder in (var / "broker").iterdir():
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)
            folder.mkdir(mode=0o700)


def _place(url: str) -> str:
    """The address without user and password."""
    parts = urlsplit(url)
    with suppress(ValueError):
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return "an address that cannot be read"


def _first_line(error: Any) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
