"""Who changed what others may do, and why: the groups themselves say only how it stands now."""

from django.conf import settings
from django.db import models


class AccessChange(models.Model):
    """One change of one person's groups or activity. `was` and `became` list groups; `at` is microseconds.

    An inactive person has none of the rights of their groups. Rows are never changed or deleted (triggers).
    """

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="access_changes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.BigIntegerField()
    was = models.JSONField(default=list)
    became = models.JSONField(default=list)
    was_active = models.BooleanField()
    became_active = models.BooleanField()
    reason = models.TextField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"access change {self.pk} of {self.person_id}"
