"""Look at safe mode, and end it."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.actions.acting import Refused
from runs.actions.safe_mode import accept
from runs.audit import safe_mode
from runs.audit.witness import look_at_start


class Command(BaseCommand):
    """Exit codes: 0 not in force, or accepted; 1 in force, or refused."""

    help = "Compare the database with the heads outside; say what safe mode is about; with --accept, end it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Accepting needs a name and a reason, for the record."""
        parser.add_argument("--accept", metavar="REASON", help="go on from the restored database")
        parser.add_argument("--as", dest="person", metavar="ADMIN", help="username of the admin who accepts")
        parser.add_argument(
            "--hold", choices=("all", "further"), default="all",
            help="stop every live run for people to look at (default), or only those known to have gone further",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Look, tell, accept."""
        look_at_start()
        found = safe_mode.in_force()
        if found is None:
            self.stdout.write("safe mode is not in force")
            return
        self.stdout.write(f"SAFE MODE: {found.why}. {safe_mode.WHAT}")
        for entry in found.further:
            self.stdout.write(f"  run {entry['run']}: here to event {entry['here']}, outside to {entry['outside']}")
        if options["accept"] is None:
            raise CommandError("to go on: manage.py safe_mode --accept REASON --as ADMIN")
        person = User.objects.filter(username=options["person"]).first()
        if person is None:
            raise CommandError("name an admin with --as")
        try:
            accept(person, options["accept"], hold_all=options["hold"] == "all")
        except Refused as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write("accepted: runs that may have done more wait for a person, the others go on")
