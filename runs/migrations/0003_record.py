"""The record as a whole gets witnesses: heads covered, checkpoints over them, and safe mode after a restore.

Triggers keep the row of a run's head, so that no append has to: it is made with the run, and opened again when
something is recorded after the end.
"""

import hashlib
import json
import time
import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


POLICY_SAME = ("number", "content", "author_id", "reason", "at")
CHECKPOINT_SAME = ("number", "at", "previous", "resumes", "content", "hash")
# name -> (table, when, condition that is refused, message); {d} stands for "differs", as each database spells it
RULES = {
    "policy_unchanged": ("runs_policy", "UPDATE", POLICY_SAME, "a policy is immutable"),
    "checkpoint_kept": ("runs_checkpoint", "DELETE", (), "checkpoints are never deleted"),
    "checkpoint_unchanged": ("runs_checkpoint", "UPDATE", CHECKPOINT_SAME, "checkpoints are never changed"),
    "head_kept": ("runs_head", "DELETE", (), "heads are never deleted"),
    "safe_mode_kept": ("runs_safemode", "DELETE", (), "what happened after a restore is never deleted"),
}
CLOSED = ("runs_safemode", "UPDATE", "NOT OLD.in_force", "what happened after a restore is never changed")
ENDS = "('succeeded', 'failed', 'cancelled')"
BEGUN = "INSERT INTO runs_head (run_id, seq, open) VALUES (NEW.id, 0, {true})"
STIRRED = "UPDATE runs_head SET open = {true} WHERE run_id = NEW.id"
AFTER_END = f"OLD.status IN {ENDS} AND NEW.seq <> OLD.seq"


def _rules(differs):
    for name, (table, when, same, message) in RULES.items():
        yield name, table, when, " OR ".join(map(differs, same)), message
    yield "safe_mode_closed", *CLOSED


def _postgresql(execute):
    text = {"content"}
    differs = lambda c: f"OLD.{c}{'::text' if c in text else ''} IS DISTINCT FROM NEW.{c}{'::text' if c in text else ''}"  # noqa: E731
    execute("DROP TRIGGER policy_unchanged ON runs_policy")
    for name, table, when, refused, message in _rules(differs):
        condition = f" WHEN ({refused})" if refused else ""
        execute(
            f"CREATE TRIGGER {name} BEFORE {when} ON {table} FOR EACH ROW{condition}"
            f" EXECUTE FUNCTION agentops_refuse('{message}')"
        )
    execute(
        "CREATE TRIGGER checkpoint_not_truncated BEFORE TRUNCATE ON runs_checkpoint"
        " EXECUTE FUNCTION agentops_refuse('checkpoints are never deleted')"
    )
    for name, does in (("begun", BEGUN), ("stirred", STIRRED)):
        execute(
            f"CREATE FUNCTION agentops_{name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN {does.format(true='true')}; RETURN NULL; END $$"
        )
    execute("CREATE TRIGGER run_begun AFTER INSERT ON runs_run FOR EACH ROW EXECUTE FUNCTION agentops_begun()")
    execute(
        f"CREATE TRIGGER run_stirred AFTER UPDATE ON runs_run FOR EACH ROW WHEN ({AFTER_END})"
        " EXECUTE FUNCTION agentops_stirred()"
    )


def _sqlite(execute):
    execute("DROP TRIGGER policy_unchanged")
    for name, table, when, refused, message in _rules(lambda c: f"OLD.{c} IS NOT NEW.{c}"):
        condition = f" WHEN {refused}" if refused else ""
        execute(
            f"CREATE TRIGGER {name} BEFORE {when} ON {table}{condition}"
            f" BEGIN SELECT RAISE(ABORT, 'agentops: {message}'); END"
        )
    execute(f"CREATE TRIGGER run_begun AFTER INSERT ON runs_run BEGIN {BEGUN.format(true=1)}; END")
    execute(
        f"CREATE TRIGGER run_stirred AFTER UPDATE ON runs_run WHEN {AFTER_END} BEGIN {STIRRED.format(true=1)}; END"
    )


def forwards(apps, schema_editor):
    """Triggers, the heads of the runs that are there already, and the checkpoint that names this installation."""
    {"postgresql": _postgresql, "sqlite": _sqlite}[schema_editor.connection.vendor](schema_editor.execute)
    Run, Head, Checkpoint = (apps.get_model("runs", name) for name in ("Run", "Head", "Checkpoint"))
    Head.objects.bulk_create([Head(run_id=pk) for pk in Run.objects.values_list("pk", flat=True)], batch_size=500)
    at, content = time.time_ns() // 1000, json.dumps({"installation": uuid.uuid4().hex})
    parts = json.dumps(["agentops/checkpoint/v1", 0, at, None, content, ""], separators=(",", ":"))
    made = hashlib.sha256(parts.encode()).digest()
    Checkpoint.objects.create(number=0, at=at, previous=b"", content=content, hash=made)


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0002_guards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="agentversion",
            name="checkpoint",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="heartbeat",
            name="trouble",
            field=models.TextField(default=""),
        ),
        migrations.AddField(
            model_name="policy",
            name="checkpoint",
            field=models.BigIntegerField(null=True),
        ),
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.BigIntegerField()),
                ("previous", models.BinaryField(max_length=32)),
                ("resumes", models.BigIntegerField(null=True)),
                ("content", models.TextField()),
                ("hash", models.BinaryField(max_length=32)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("resumes__isnull", False)), fields=["number"], name="checkpoint_resumes"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("previous",), name="checkpoint_one_successor")],
            },
        ),
        migrations.CreateModel(
            name="Head",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="covered",
                        serialize=False,
                        to="runs.run",
                    ),
                ),
                ("seq", models.BigIntegerField(default=0)),
                ("open", models.BooleanField(default=True)),
            ],
            options={
                "indexes": [models.Index(condition=models.Q(("open", True)), fields=["run"], name="head_open")],
            },
        ),
        migrations.CreateModel(
            name="SafeMode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("in_force", models.BooleanField(default=True)),
                ("began_at", models.BigIntegerField()),
                ("why", models.TextField()),
                ("known", models.BigIntegerField()),
                ("head_number", models.BigIntegerField()),
                ("head_hash", models.BinaryField(max_length=32)),
                ("further", models.JSONField(default=list)),
                ("ended_at", models.BigIntegerField(null=True)),
                ("reason", models.TextField(default="")),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("in_force", True)), fields=("in_force",), name="safe_mode_one_in_force"
                    )
                ],
            },
        ),
        migrations.RunPython(forwards, migrations.RunPython.noop),
    ]
