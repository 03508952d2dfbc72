"""Check the record: every run, the checkpoints, the configuration, and the heads outside the database."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from runs.audit import outside
from runs.audit.check import Record
from runs.models import Run


class Command(BaseCommand):
    """Exit codes: 0 all matches, 1 something does not and the first bad place is named, 2 it could not be checked."""

    help = (
        "Recompute chains, payloads, states and rows of all runs, or of those named, and compare them with the "
        "checkpoints and with the heads outside. Exits with 0 if all matches, 1 if not, 2 if it could not be checked."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Runs may be named by number; another file of heads may be named, such as a copy on another machine."""
        parser.add_argument("run", nargs="*", type=int)
        parser.add_argument("--heads", type=Path, help="file of the heads outside (default: the one of AGENTOPS_HEADS)")
        parser.add_argument("--without-heads", action="store_true", help="compare with the database's checkpoints only")

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify, print what is wrong, and say how much was looked at."""
        try:
            path = None if options["without_heads"] else options["heads"] or outside.place()
            record = Record(path, outside.key())
            faults = self.told(record, options["run"])
        except FileNotFoundError as error:
            raise CommandError(
                f"{error.filename} is not there: name the file with --heads, or leave it out with --without-heads",
                returncode=2,
            ) from error
        except (OSError, DatabaseError) as error:
            raise CommandError(f"not checked: {error}", returncode=2) from error
        if faults:
            raise CommandError(f"{len(faults)} faults; the first bad place is {faults[0]}")
        outer = f"{len(record.lines)} outside" if path else "heads outside not compared"
        signed = any(line.signature for line in record.lines.values()) and not settings.AGENTOPS_HEADS_KEY
        self.stdout.write(
            f"{self.looked} runs verified, no fault; {len(record.stored)} checkpoints, {outer}"
            + ("; signatures not checked: AGENTOPS_HEADS_KEY is not set" if signed else "")
        )

    def told(self, record: Record, wanted: list[int]) -> list[str]:
        """All faults, each printed as it is found."""
        faults: list[str] = []

        def tell(fault: str) -> None:
            faults.append(fault)
            self.stderr.write(fault)

        for fault in record.faults():
            tell(fault)
        self.looked = 0
        for pk in wanted or list(Run.objects.order_by("pk").values_list("pk", flat=True)):
            self.looked += 1
            for fault in record.run_faults(pk):
                tell(f"run {pk}: {fault}")
        for run, fault in record.missing() if not wanted else ():
            tell(f"run {run}: {fault}")
        return faults
