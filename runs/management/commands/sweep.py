"""The sweeper process."""

import logging
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections

from runs.audit.witness import Witness
from runs.health import Heart, start_heart, stop_hearts
from runs.sweep import Sweeper

log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Wake every run that is due, once a second, and keep the heads outside; ends on SIGTERM."""

    help = "Re-find runs that are runnable, overdue or abandoned, and wake workers for them. Any number may run."

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until told to stop; a database that is away costs a line and a tick."""
        done = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: done.set())
        heart = start_heart("sweeper")
        sweeper, witness = Sweeper(), Witness()
        while not done.is_set():
            try:
                note(heart, witness.look())
                sweeper.sweep()
            except DatabaseError as error:
                log.warning("sweep failed, trying again: %s", error)
                close_old_connections()
            done.wait(settings.AGENTOPS_SWEEP)
        stop_hearts()


def note(heart: Heart, trouble: str) -> None:
    """Say what is wrong with the heads outside, once in the log and with every sign of life until it is mended."""
    if trouble and trouble != heart.trouble:
        log.error("%s", trouble)
    heart.trouble = trouble
