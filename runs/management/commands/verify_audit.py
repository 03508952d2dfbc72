"""Check the record of every run."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.journal.verify import verify
from runs.models import Run


class Command(BaseCommand):
    """Recompute every chain, payload digest and state; exit 1 and name what does not match."""

    help = "Recompute chains, payloads and states of all runs, or of those named."

    def add_arguments(self, parser: CommandParser) -> None:
        """Runs may be named by number."""
        parser.add_argument("run", nargs="*", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify, print what is wrong, and say how much was looked at."""
        runs = Run.objects.filter(pk__in=options["run"]) if options["run"] else Run.objects.all()
        faults, looked = 0, 0
        for run in runs.order_by("pk").iterator():
            looked += 1
            for fault in verify(run):
                faults += 1
                self.stderr.write(f"run {run.pk}: {fault}")
        if faults:
            raise CommandError(f"{faults} faults in {looked} runs")
        self.stdout.write(f"{looked} runs verified, no fault")
