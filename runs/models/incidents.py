"""What was held to be true and turned out not to be."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.models.runs import Run


class Incident(models.Model):
    """One contradiction between the record and late evidence; (run, seq) is its event. Times are microseconds.

    `turn` and `ordinal` name the call, 0 where it is about the run. It is open until a person says what was found.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="incidents", db_index=False)
    seq = models.BigIntegerField()
    turn = models.IntegerField()
    ordinal = models.IntegerField()
    what = models.TextField()
    opened_at = models.BigIntegerField()
    closed_at = models.BigIntegerField(null=True)
    closed_seq = models.BigIntegerField(null=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    finding = models.TextField(default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="incident_identity")]
        indexes = [models.Index(fields=["id"], condition=Q(closed_at__isnull=True), name="incident_open")]

    @property
    def closed_by(self) -> str:
        """The act, one of `rights.ACTS`, that closes it: what is about the record itself takes an admin's look."""
        return "close_incident" if self.ordinal else "sign_off"

    def __str__(self) -> str:
        return f"incident {self.pk} of run {self.run_id}"
