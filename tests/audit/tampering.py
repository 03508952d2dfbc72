"""What somebody does who owns the database: the guards are taken off first."""

from typing import Any

from django.db import connection

GUARDS = {
    "runs_event": ("event_kept", "event_unchanged"), "runs_run": ("run_kept", "run_only_forward"),
    "runs_checkpoint": ("checkpoint_kept", "checkpoint_unchanged"), "runs_head": ("head_kept",),
    "runs_policy": ("policy_kept", "policy_unchanged"), "runs_call": ("call_kept",),
    "runs_agentversion": ("agent_version_unchanged",),
}  # fmt: skip


def sql(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table, names in GUARDS.items():
            for name in names:
                on = f" ON {table}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
        cursor.execute(statement, params)
