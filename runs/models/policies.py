"""Policies: immutable, numbered sets of rules; one is current."""

from django.conf import settings
from django.db import models


class Policy(models.Model):
    """`content` = {defaults: {tool: verdict}, risk: {tool: level}, off: [tool | "*"], rules: [...]}.

    `checkpoint` is the one that first covered the version.
    """

    number = models.PositiveIntegerField(primary_key=True)
    content = models.JSONField()
    current = models.BooleanField(default=False)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField(blank=True)
    at = models.BigIntegerField()
    checkpoint = models.BigIntegerField(null=True)

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["current"], condition=models.Q(current=True), name="policy_one_current")
        ]

    def __str__(self) -> str:
        return f"policy {self.number}"
