"""The one Django app."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Supervised agent runs."""

    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        """Connect the checks, and the Celery app, so that tasks published from any process use our broker."""
        import agentops.celery  # noqa: F401
        import runs.checks  # noqa: F401
