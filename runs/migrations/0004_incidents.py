"""Incidents get rows, so that people can work through them; looks that are due at presumed verdicts get an index."""

import json

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def rows_of_the_past(apps, schema_editor):
    """The incidents that the record has already: none of them was closed by anybody."""
    Event, Incident = apps.get_model("runs", "Event"), apps.get_model("runs", "Incident")
    for event in Event.objects.filter(kind="IncidentOpened").iterator():
        Incident.objects.create(
            run_id=event.run_id, seq=event.seq, turn=event.turn, ordinal=event.ordinal, opened_at=event.at,
            what=json.loads(event.body)["what"],
        )


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0003_record"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Incident",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="incidents",
                        to="runs.run",
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("turn", models.IntegerField()),
                ("ordinal", models.IntegerField()),
                ("what", models.TextField()),
                ("opened_at", models.BigIntegerField()),
                ("closed_at", models.BigIntegerField(null=True)),
                ("closed_seq", models.BigIntegerField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("finding", models.TextField(default="")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)), fields=["id"], name="incident_open"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("run", "seq"), name="incident_identity")],
            },
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("watch_at__isnull", False)), fields=["watch_at"], name="call_watched"
            ),
        ),
        migrations.RunPython(rows_of_the_past, migrations.RunPython.noop),
    ]
