"""The catalogue of models, budgets and what was spent; entries, budgets and settled requests are never changed."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# table -> (what may not happen to a row, when: only columns that are compared, or None for always, what is said)
SAME = {
    "modelentry": ("name", "number", "window", "most", "prices", "long", "beyond", "priced_on", "source", "at",
                   "capabilities", "offered", "author_id", "reason"),
    "budget": ("scope", "key", "limit", "author_id", "reason", "at"),
}  # fmt: skip
JSON = {"prices", "beyond", "capabilities"}


def forwards(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    differs = (
        (
            lambda c: (
                f'OLD."{c}"{"::text" if c in JSON else ""} IS DISTINCT FROM NEW."{c}"{"::text" if c in JSON else ""}'
            )
        )
        if postgresql
        else (lambda c: f'OLD."{c}" IS NOT NEW."{c}"')
    )

    def refuse(table, when, condition, message):
        name = f"{table}_{'kept' if when == 'DELETE' else 'unchanged'}"
        does = (
            f"EXECUTE FUNCTION agentops_refuse('{message}')"
            if postgresql
            else f"BEGIN SELECT RAISE(ABORT, 'agentops: {message}'); END"
        )
        row, only = ("FOR EACH ROW " if postgresql else ""), (f"WHEN ({condition}) " if condition else "")
        schema_editor.execute(f"CREATE TRIGGER {name} BEFORE {when} ON runs_{table} {row}{only}{does}")

    for table, columns in SAME.items():
        refuse(table, "UPDATE", " OR ".join(map(differs, columns)), f"a {table} is immutable")
        refuse(table, "DELETE", None, f"a {table} is never deleted")
    refuse("spend", "UPDATE", "OLD.settled", "a settled request is never changed")
    refuse("spend", "DELETE", None, "requests are never deleted")


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_admin_places"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="model",
            field=models.CharField(max_length=120, null=True),
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scope", models.CharField(max_length=8)),
                ("key", models.BigIntegerField()),
                ("day", models.IntegerField()),
                ("used", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("scope", "key", "day"), name="account_place")],
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "scope",
                    models.CharField(choices=[("run", "run"), ("day", "day"), ("agent", "agent"), ("person", "person")], max_length=8),
                ),
                ("key", models.BigIntegerField(default=0)),
                ("limit", models.BigIntegerField(null=True)),
                ("reason", models.TextField()),
                ("at", models.BigIntegerField()),
                ("checkpoint", models.BigIntegerField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ModelEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("number", models.PositiveIntegerField()),
                ("window", models.PositiveIntegerField(default=0)),
                ("most", models.PositiveIntegerField(default=0)),
                ("prices", models.JSONField(default=dict)),
                ("long", models.PositiveIntegerField(default=0)),
                ("beyond", models.JSONField(default=dict)),
                ("priced_on", models.CharField(blank=True, max_length=10)),
                ("source", models.CharField(blank=True, max_length=300)),
                ("capabilities", models.JSONField(default=list)),
                ("offered", models.BooleanField(default=True)),
                ("reason", models.TextField()),
                ("at", models.BigIntegerField()),
                ("checkpoint", models.BigIntegerField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "model entries",
                "ordering": ["name", "-number"],
            },
        ),
        migrations.CreateModel(
            name="Spend",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("turn", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField()),
                ("agent", models.BigIntegerField()),
                ("starter", models.BigIntegerField()),
                ("day", models.IntegerField()),
                ("reserved", models.BigIntegerField(null=True)),
                ("cost", models.BigIntegerField(null=True)),
                ("estimate", models.BooleanField(default=True)),
                ("settled", models.BooleanField(default=False)),
                ("usage", models.JSONField(default=dict)),
                (
                    "entry",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.modelentry"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="spends", to="runs.run"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="modelentry",
            constraint=models.UniqueConstraint(fields=("name", "number"), name="model_entry_number"),
        ),
        migrations.AddIndex(
            model_name="spend",
            index=models.Index(fields=["day", "agent"], name="spend_day_agent"),
        ),
        migrations.AddConstraint(
            model_name="spend",
            constraint=models.UniqueConstraint(fields=("run", "turn", "attempt"), name="spend_request"),
        ),
        migrations.RunPython(forwards, migrations.RunPython.noop),
    ]
