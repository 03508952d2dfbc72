"""What a sweeper does for the record once a minute: look whether the database is what it was, and keep its head."""

import logging
import os
from pathlib import Path

from django.db import DatabaseError

from runs.audit import outside, safe_mode
from runs.audit.checkpoints import Line, checkpoint
from runs.models import Checkpoint

log = logging.getLogger(__name__)
BATCH = 200


class Witness:
    """Keeps the file outside of one machine. Any number may look at once; they share what they find out."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._read: tuple[object, Line | None] = (None, None)

    def look(self, *, at_once: bool = False) -> str:
        """Compare, and keep what is new; returns what is wrong with the file in words, empty if nothing.

        A database that does not know the last head outside goes to safe mode, and then nothing is added. A file that
        cannot be used never stops anything else. With `at_once` a checkpoint does not wait for its minute.
        """
        path = outside.place()
        try:
            last = self._tail(path)
            if not agrees(path, last):
                return ""
            if last is None and Checkpoint.objects.filter(number__gt=0).exists():
                log.warning("the heads outside begin anew: if there was a file, somebody took it away")
            checkpoint(at_once=at_once)
            self._keep(path, last)
            return ""
        except outside.BadLine as error:
            trouble = f"{error}: see docs/backup.md"
        except OSError as error:
            trouble = f"The heads outside the database cannot be used ({error.strerror}): see AGENTOPS_HEADS."
        if safe_mode.in_force() is None:
            checkpoint(at_once=at_once)  # the database's own chain goes on; the file catches up when it can
        return trouble

    def _tail(self, path: Path) -> Line | None:
        """The last line outside, read again only if the file is not as it was."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        stamp = (str(path), found.st_ino, found.st_size, found.st_mtime_ns)
        if self._read[0] != stamp:
            self._read = stamp, outside.tail(path)
        return self._read[1]

    def _keep(self, path: Path, last: Line | None) -> None:
        if not Checkpoint.objects.filter(number__gt=last.number if last else -1).exists():
            return
        secret = outside.key()
        with outside.locked(path) as file:
            newest = outside.tail(path)  # another sweeper may have been here
            rows = Checkpoint.objects.filter(number__gt=newest.number if newest else -1).order_by("number")
            while batch := list(rows[:BATCH]):
                outside.write(file, [outside.signed(Line.of(row), secret) for row in batch])
                rows = rows.filter(number__gt=batch[-1].number)


def agrees(path: Path, last: Line | None) -> bool:
    """Whether the database knows the last head outside; if it does not, safe mode begins. False in safe mode."""
    if safe_mode.in_force() is not None:
        return False
    if last is None or safe_mode.is_known(last):
        return True
    safe_mode.enter(path, last)
    return False


def look_at_start() -> None:
    """What every process does before it takes part: a file that is in sight is compared; none, or a bad one, is not."""
    try:
        path = outside.place()
        agrees(path, outside.tail(path))
    except (OSError, outside.BadLine, DatabaseError, Checkpoint.DoesNotExist) as error:
        log.error("not known whether the database is as new as its heads outside: %s", error)
