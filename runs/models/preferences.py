"""How a person wants to be shown things; nothing of it moves a run."""

from django.conf import settings
from django.db import models


class Preference(models.Model):
    """One row per person who chose something. Empty `language`, `theme`, `zone`: as the browser says.

    `keys` lets single letters act; `notify` lets the browser tell of what waits for this person.
    """

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="preference"
    )
    language = models.CharField(max_length=16, blank=True, default="")
    theme = models.CharField(max_length=8, blank=True, default="")
    zone = models.CharField(max_length=64, blank=True, default="")
    keys = models.BooleanField(default=True)
    notify = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"preferences of {self.person_id}"
