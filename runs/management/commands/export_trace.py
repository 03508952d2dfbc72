"""Hand the approvals of a run to a checker of others."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.audit.trace import trace
from runs.journal.chain import entry_of
from runs.journal.verify import snapshot, verify
from runs.models import Event, Run


class Command(BaseCommand):
    """Exit codes: 0 written, 1 there is no such run or its record does not verify, and then nothing is written."""

    help = "Write what was proposed, shown, decided and executed in a run as JSON lines for agentack (docs/trace.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The number of the run, as its page has it."""
        parser.add_argument("run", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify, then write to standard output."""
        with snapshot():
            run = Run.objects.select_related("agent_version__agent").filter(pk=options["run"]).first()
            if run is None:
                raise CommandError(f"there is no run {options['run']}")
            if faults := verify(run):
                raise CommandError(f"run {run.pk} is not exported, its record has faults: {faults[0]}")
            events = Event.objects.filter(run=run).order_by("seq")
            for line in trace(run.uid, map(entry_of, events)):
                self.stdout.write(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
