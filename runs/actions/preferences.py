"""Choose how one is shown things. No run moves by it, and nobody else sees it."""

from typing import Any

from django.contrib.auth.models import User

from runs.actions.acting import need
from runs.models import Preference


def choose(person: User, **chosen: Any) -> None:
    """Keep what a person chose: any of language, theme, zone, keys, notify. Raises `Refused`."""
    need(person, "see")
    Preference.objects.update_or_create(person=person, defaults=chosen)
