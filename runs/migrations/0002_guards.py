"""What nobody may store, whoever writes: history is not changed, ends stay ends, versions are immutable.

The same rules on both databases, as triggers. The one permitted change of an event is the erasure of its payload.
"""

from django.db import migrations

EVENT_SAME = (
    "run_id", "seq", "kind", "turn", "ordinal", "revision", "actor", "person_id", "epoch", "at", "body",
    "payload_digest", "state_digest", "hash",
)  # fmt: skip
ENDS = "('succeeded', 'failed', 'cancelled')"
CLOSED = "('invalid', 'denied', 'refused', 'expired', 'withdrawn', 'done')"


def _changed(columns, differs):
    return " OR ".join(f"{differs(c)}" for c in columns)


# name -> (table, when, condition that is refused, message); {d} stands for "differs", which each database spells its way
RULES = {
    "event_kept": ("runs_event", "DELETE", None, "events are never deleted"),
    "event_unchanged": (
        "runs_event", "UPDATE",
        lambda d: f"{_changed(EVENT_SAME, d)} OR NEW.payload IS NOT NULL", "events are never changed",
    ),
    "run_kept": ("runs_run", "DELETE", None, "runs are never deleted"),
    "run_only_forward": (
        "runs_run", "UPDATE",
        lambda d: f"{d('uid')} OR NEW.seq < OLD.seq OR NEW.epoch < OLD.epoch"
        f" OR (OLD.status IN {ENDS} AND NEW.status <> OLD.status)", "a run only moves forward",
    ),
    "call_kept": ("runs_call", "DELETE", None, "calls are never deleted"),
    "call_closed": (
        "runs_call", "UPDATE", lambda d: f"OLD.status IN {CLOSED} AND NEW.status <> OLD.status", "a closed call stays closed",
    ),
    "decision_kept": ("runs_decision", "DELETE", None, "decisions are never deleted"),
    "decision_unchanged": ("runs_decision", "UPDATE", lambda d: "OLD.id = OLD.id", "decisions are never changed"),
    "approval_kept": ("runs_approval", "DELETE", None, "approvals are never deleted"),
    "approval_closed": (
        "runs_approval", "UPDATE",
        lambda d: f"{_changed(('run_id', 'turn', 'ordinal', 'n', 'digest'), d)}"
        f" OR (OLD.status NOT IN ('pending', 'approved') AND NEW.status <> OLD.status)", "a closed approval stays closed",
    ),
    "question_kept": ("runs_question", "DELETE", None, "questions are never deleted"),
    "question_closed": (
        "runs_question", "UPDATE", lambda d: "OLD.status <> 'open' AND NEW.status <> OLD.status",
        "a closed question stays closed",
    ),
    "agent_version_kept": ("runs_agentversion", "DELETE", None, "versions are never deleted"),
    "agent_version_unchanged": (
        "runs_agentversion", "UPDATE", lambda d: _changed(("number", "definition"), d), "a version is immutable",
    ),
    "policy_unchanged": ("runs_policy", "UPDATE", lambda d: _changed(("number", "content"), d), "a policy is immutable"),
    "policy_kept": ("runs_policy", "DELETE", None, "policies are never deleted"),
}  # fmt: skip


def _postgresql(execute):
    execute(
        "CREATE FUNCTION agentops_refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION USING MESSAGE = 'agentops: ' || TG_ARGV[0],"
        " ERRCODE = 'check_violation'; END $$"
    )
    text = {"definition", "content"}
    differs = lambda c: f"OLD.{c}{'::text' if c in text else ''} IS DISTINCT FROM NEW.{c}{'::text' if c in text else ''}"  # noqa: E731
    for name, (table, when, refused, message) in RULES.items():
        condition = f" WHEN ({refused(differs)})" if refused else ""
        execute(
            f"CREATE TRIGGER {name} BEFORE {when} ON {table} FOR EACH ROW{condition}"
            f" EXECUTE FUNCTION agentops_refuse('{message}')"
        )
    execute(
        "CREATE TRIGGER event_not_truncated BEFORE TRUNCATE ON runs_event"
        " EXECUTE FUNCTION agentops_refuse('events are never deleted')"
    )
    # Every append rewrites the run's row: room on its page keeps the new version beside the old one.
    execute("ALTER TABLE runs_run SET (fillfactor = 50)")
    execute("ALTER TABLE runs_call SET (fillfactor = 70)")


def _sqlite(execute):
    differs = lambda c: f"OLD.{c} IS NOT NEW.{c}"  # noqa: E731
    for name, (table, when, refused, message) in RULES.items():
        condition = f" WHEN {refused(differs)}" if refused else ""
        execute(
            f"CREATE TRIGGER {name} BEFORE {when} ON {table}{condition}"
            f" BEGIN SELECT RAISE(ABORT, 'agentops: {message}'); END"
        )


def forwards(apps, schema_editor):
    {"postgresql": _postgresql, "sqlite": _sqlite}[schema_editor.connection.vendor](schema_editor.execute)


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]
    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
