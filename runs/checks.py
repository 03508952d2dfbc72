"""Durable means durable: a database that may forget a commit is refused (invariant 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection


def durability_fault() -> str | None:
    """Why a commit on this database could be lost in a power cut, and what to do; None when it could not."""
    if connection.vendor == "sqlite":
        found = {name: _one(f"PRAGMA {name}") for name in ("journal_mode", "synchronous")}
        if found != {"journal_mode": "wal", "synchronous": 2}:
            return (
                f"SQLite reports {found}, not WAL and FULL: put the data folder on a local disk, "
                "and take journal_mode and synchronous out of DATABASE_URL"
            )
        return None
    for name in ("synchronous_commit", "fsync"):
        if _one(f"SHOW {name}") == "off":
            return (
                f"PostgreSQL has {name} = off, so a committed intent could be lost before its effect: "
                f"set {name} = on for this database and user"
            )
    return None


def _one(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@register(Tags.database)
def durable_database(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """The same as a system check: `migrate` and `check --database default` run it."""
    fault = durability_fault() if databases else None
    return [Error(fault, id="runs.E001")] if fault else []
