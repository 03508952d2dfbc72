"""Write the pages that repeat the engine's tables."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runs.management.pages import PAGES


class Command(BaseCommand):
    """Write docs/states.md and docs/events.md."""

    help = "Write docs/states.md and docs/events.md from the tables of the engine."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Write both; unchanged tables give unchanged pages."""
        for name, text in PAGES.items():
            (settings.BASE_DIR / "docs" / name).write_text(text())
            self.stdout.write(f"docs/{name}")
