"""Signs of life of the processes."""

from django.db import models


class Heartbeat(models.Model):
    """One row per process: `kind` is web, worker or sweeper, `at` microseconds since 1970; `trouble` of the record."""

    kind = models.CharField(max_length=16)
    ident = models.CharField(max_length=120)
    at = models.BigIntegerField()
    trouble = models.TextField(default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "ident"], name="heartbeat_process")]

    def __str__(self) -> str:
        return f"{self.kind} {self.ident}"
