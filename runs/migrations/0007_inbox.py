"""The inbox reads by urgency, object history by key, and people keep filters under names of their own."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

BATCH = 2000


def keys_of_the_past(apps, schema_editor):
    """An index row for each object that the calls on record name."""
    Call, CallObject = apps.get_model("runs", "Call"), apps.get_model("runs", "CallObject")
    found = []
    for run, turn, ordinal, keys in Call.objects.values_list("run_id", "turn", "ordinal", "objects_touched").iterator():
        found += [CallObject(run_id=run, turn=turn, ordinal=ordinal, key=key) for key in dict.fromkeys(keys)]
        if len(found) >= BATCH:
            CallObject.objects.bulk_create(found)
            found = []
    CallObject.objects.bulk_create(found)


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_lists"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CallObject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.TextField()),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.run"
                    ),
                ),
                ("turn", models.IntegerField()),
                ("ordinal", models.IntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("key", "run", "turn", "ordinal"), name="call_object_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=400)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("person", "name"), name="saved_view_name")],
            },
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False), ("status", "pending")),
                fields=["expires_at", "id"],
                name="approval_due",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", False)), fields=["closed_at", "id"], name="approval_closed"
            ),
        ),
        migrations.RunPython(keys_of_the_past, migrations.RunPython.noop),
    ]
