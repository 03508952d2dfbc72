"""One act on many runs: what was asked for, and what became of each run. Runs move by the acts of people alone."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.models.runs import Run

MOST = 1000  # runs at once; who has more narrows the filter
KINDS = ("pause", "cancel")
RESULTS = ("", "done", "skipped", "refused", "left")


class Bulk(models.Model):
    """Many runs to be paused or cancelled by one person. Times are microseconds since 1970.

    `due_at` is when a worker may take it up: a worker that has it sets it a while ahead, so that one that dies is
    followed by another; NULL when nothing is left to do. `stopper` is who ended it before its end.
    """

    kind = models.CharField(max_length=8)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="bulks")
    why = models.TextField(blank=True, default="")
    request_key = models.CharField(max_length=64)
    started_at = models.BigIntegerField()
    due_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField(null=True)
    stopper = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["request_key"], name="bulk_request_key"),
            models.CheckConstraint(condition=Q(kind__in=KINDS), name="bulk_kind"),
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="bulk_due")]

    def __str__(self) -> str:
        return f"bulk {self.kind} {self.pk}"


class BulkItem(models.Model):
    """One run of it. `seen` is the state that the person saw; `result` is empty until it was its turn.

    done: it was acted on, or stood so already. skipped: it stands otherwise than it was seen. refused: the act said
    no. left: somebody stopped the whole before.
    """

    bulk = models.ForeignKey(Bulk, on_delete=models.CASCADE, related_name="items", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+", db_index=False)
    seen = models.CharField(max_length=20)
    result = models.CharField(max_length=8, default="")
    said = models.TextField(default="")
    at = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bulk", "run"], name="bulk_item_once"),
            models.CheckConstraint(condition=Q(result__in=RESULTS), name="bulk_item_result"),
        ]
        indexes = [models.Index(fields=["bulk"], condition=Q(result=""), name="bulk_item_open")]

    def __str__(self) -> str:
        return f"run {self.run_id} of bulk {self.bulk_id}"
