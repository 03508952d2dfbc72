"""What people are asked and what they said."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.engine import machines
from runs.models.runs import Run


class Approval(models.Model):
    """A question to people about one call at one revision, bound to its action digest; `n` counts the askings."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="approvals")
    turn = models.IntegerField()
    ordinal = models.IntegerField()
    revision = models.IntegerField()
    n = models.IntegerField()
    status = models.CharField(max_length=12, default="pending")
    digest = models.CharField(max_length=64)
    rule = models.CharField(max_length=64)
    exclude = models.JSONField(default=list)
    expires_at = models.BigIntegerField(null=True)
    created_at = models.BigIntegerField()
    closed_at = models.BigIntegerField(null=True)
    closed_why = models.TextField(default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "turn", "ordinal", "n"], name="approval_identity"),
            models.UniqueConstraint(
                fields=["run", "turn", "ordinal"], condition=Q(status="pending"), name="approval_one_open"
            ),
            models.CheckConstraint(condition=Q(status__in=list(machines.APPROVAL)), name="approval_status"),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="pending"), name="approval_open"),
            models.Index(
                fields=["expires_at", "id"],
                condition=Q(status="pending", expires_at__isnull=False),
                name="approval_due",
            ),
            models.Index(fields=["closed_at", "id"], condition=Q(closed_at__isnull=False), name="approval_closed"),
        ]

    def __str__(self) -> str:
        return f"approval {self.pk} of call {self.turn}.{self.ordinal}"


class Decision(models.Model):
    """One person's vote: who, what, why, when, on which digest."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="decisions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions")
    vote = models.CharField(max_length=8)
    why = models.TextField(blank=True)
    digest = models.CharField(max_length=64)
    at = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["approval", "person"], name="decision_one_vote"),
            models.CheckConstraint(condition=Q(vote__in=["approve", "reject"]), name="decision_vote"),
        ]
        indexes = [models.Index(fields=["at"], name="decision_at")]

    def __str__(self) -> str:
        return f"{self.person} {self.vote}"


class Question(models.Model):
    """The agent asks a person; `schema` is the JSON schema of the answer."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="questions")
    turn = models.IntegerField()
    ordinal = models.IntegerField()
    text = models.TextField()
    schema = models.JSONField(default=dict)
    status = models.CharField(max_length=12, default="open")
    answer = models.JSONField(null=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.BigIntegerField()
    closed_at = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "turn", "ordinal"], name="question_identity"),
            models.CheckConstraint(condition=Q(status__in=list(machines.QUESTION)), name="question_status"),
        ]
        indexes = [models.Index(fields=["created_at"], condition=Q(status="open"), name="question_open")]

    def __str__(self) -> str:
        return f"question {self.pk}"
