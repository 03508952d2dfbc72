"""What witnesses the record as a whole: covered heads, checkpoints over them, and safe mode after a restore."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.models.runs import Run


class Head(models.Model):
    """How far the last checkpoint covers a run; `open` until the run has ended and its end is covered.

    A trigger makes the row with its run, and opens it again when something is recorded after the end: the append
    itself has nothing to do, and a checkpoint looks at live runs alone, however many have ended.
    """

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="covered")
    seq = models.BigIntegerField(default=0)
    open = models.BooleanField(default=True)

    class Meta:
        indexes = [models.Index(fields=["run"], condition=Q(open=True), name="head_open")]

    def __str__(self) -> str:
        return f"head of run {self.pk}"


class Checkpoint(models.Model):
    """Heads that moved and configuration that is new since the last one; number 0 names the installation.

    `previous` is the hash of the checkpoint before, unique, so that no two can follow the same one. `resumes` is set
    where an admin accepted a restored database: it follows checkpoint `resumes`, and those in between are abandoned.
    """

    number = models.BigIntegerField(primary_key=True)
    at = models.BigIntegerField()
    previous = models.BinaryField(max_length=32)
    resumes = models.BigIntegerField(null=True)
    content = models.TextField()
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["previous"], name="checkpoint_one_successor")]
        indexes = [models.Index(fields=["number"], condition=Q(resumes__isnull=False), name="checkpoint_resumes")]

    def __str__(self) -> str:
        return f"checkpoint {self.number}"


class SafeMode(models.Model):
    """The database was found older than its outside heads. While `in_force` nothing advances.

    `known` is the last checkpoint that both have, `head_number` and `head_hash` the last one outside. `further` lists
    runs that had gone further: [{run, uid, here, outside}], the events that this database and the outside know of.
    """

    in_force = models.BooleanField(default=True)
    began_at = models.BigIntegerField()
    why = models.TextField()
    known = models.BigIntegerField()
    head_number = models.BigIntegerField()
    head_hash = models.BinaryField(max_length=32)
    further = models.JSONField(default=list)
    ended_at = models.BigIntegerField(null=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField(default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["in_force"], condition=Q(in_force=True), name="safe_mode_one_in_force")
        ]

    def __str__(self) -> str:
        return f"safe mode {self.pk}"
