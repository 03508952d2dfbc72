"""Ask, with new code and before it is let loose, which runs it cannot go on with."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.audit.upgrade import findings


class Command(BaseCommand):
    """Exit codes: 0 every live run can go on, 1 some cannot and each is told with what to do."""

    help = (
        "List runs that this code cannot go on with: states and events that it cannot read, tools, models and limits "
        "that it does not have. Exits with 1 if there are any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Runs that have ended need only to be readable."""
        parser.add_argument("--ended", action="store_true", help="also look whether ended runs can be read")

    def handle(self, *args: Any, **options: Any) -> None:
        """Tell all."""
        found = 0
        for finding in findings(ended=options["ended"]):
            found += 1
            self.stderr.write(finding)
        if found:
            raise CommandError(f"{found} findings: see to them before the upgrade")
        self.stdout.write("every run can go on with this code")
