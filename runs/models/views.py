"""What people keep for themselves."""

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A filter of the inbox under a person's own name for it; `query` is the query string of its address."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=400)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "name"], name="saved_view_name")]

    def __str__(self) -> str:
        return self.name
