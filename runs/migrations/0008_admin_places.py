"""What the places of admins need: who changed whose groups and why, never changed again; an index for the overview."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

RULES = {
    "access_kept": ("DELETE", "changes of access are never deleted"),
    "access_unchanged": ("UPDATE", "changes of access are never changed"),
}


def forwards(apps, schema_editor):
    postgresql = schema_editor.connection.vendor == "postgresql"
    for name, (when, message) in RULES.items():
        does = (
            f"FOR EACH ROW EXECUTE FUNCTION agentops_refuse('{message}')" if postgresql
            else f"BEGIN SELECT RAISE(ABORT, 'agentops: {message}'); END"
        )
        schema_editor.execute(f"CREATE TRIGGER {name} BEFORE {when} ON runs_accesschange {does}")


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0007_inbox"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AccessChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.BigIntegerField()),
                ("was", models.JSONField(default=list)),
                ("became", models.JSONField(default=list)),
                ("was_active", models.BooleanField()),
                ("became_active", models.BooleanField()),
                ("reason", models.TextField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="access_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["at"], name="decision_at"),
        ),
        migrations.RunPython(forwards, migrations.RunPython.noop),
    ]
