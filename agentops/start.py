"""Loading the settings at the edge of a process, so that a wrong one is a line and not a traceback."""

from __future__ import annotations

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def settings_or_exit() -> None:
    """Read the settings now; a bad value ends the process with its reason."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
    try:
        settings.INSTALLED_APPS  # noqa: B018  (the first attribute loads the module)
    except ImproperlyConfigured as error:
        sys.exit(f"agentops: {error}")
