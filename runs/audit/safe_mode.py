"""Safe mode: a database that is older than its heads outside advances nothing until an admin has looked.

Effects that happened after the backup was made are unknown to the restored database: a run that went on would do them
again. So no claim succeeds (`journal/lease.py`), no person starts or decides, and the sweeper wakes nobody.
"""

import logging
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Case, F, Value, When

from runs.audit import outside
from runs.audit.checkpoints import Line, locked_last
from runs.journal.lease import now
from runs.models import Checkpoint, Run, SafeMode

log = logging.getLogger(__name__)
WHAT = (
    "The database is older than its record outside: it was restored from a backup, or cut. What was done since then "
    "is not in it. Nothing starts and nobody decides until an admin has accepted this state."
)


def in_force() -> SafeMode | None:
    """The safe mode that is in force, if any: one query on a table of a few rows."""
    return SafeMode.objects.filter(in_force=True).first()


def is_known(line: Line) -> bool:
    """Whether this database has a checkpoint, or an admin accepted that it has not."""
    rows = Checkpoint.objects.filter(number=line.number, hash=bytes.fromhex(line.hash))
    return rows.exists() or Checkpoint.objects.filter(resumes__lt=line.number, number__gt=line.number).exists()


def enter(path: Path, head: Line) -> SafeMode:
    """Begin safe mode because of a head outside that this database does not know; again: the one in force.

    Whoever holds a lease loses it: with the epoch raised, nothing that they append is accepted.
    """
    known, further = _gone_further(path)
    with transaction.atomic():
        locked_last()
        if (found := in_force()) is not None:
            return found
        begun = SafeMode.objects.create(
            began_at=now(), known=known, head_number=head.number, head_hash=bytes.fromhex(head.hash), further=further,
            why=f"checkpoint {head.number} stands outside and not in the database, which knows {known}",
        )  # fmt: skip
        status = Case(When(status="running", then=Value("queued")), default=F("status"))
        held = Run.objects.filter(due_at__isnull=False, lease_until__isnull=False)
        held.update(epoch=F("epoch") + 1, lease_until=None, due_at=0, status=status)
    log.critical("SAFE MODE: %s; %s runs had gone further. %s", begun.why, len(further), WHAT)
    return begun


def _gone_further(path: Path) -> tuple[int, list[dict[str, Any]]]:
    """(last checkpoint that both have, runs that went further after it), the second as in `SafeMode.further`."""
    lines = list(outside.lines(path))
    stored = {row.number: bytes(row.hash).hex() for row in Checkpoint.objects.only("number", "hash").iterator()}
    known = max((line.number for line in lines if stored.get(line.number) == line.hash), default=0)
    beyond: dict[str, tuple[int, int]] = {}
    for line in lines:
        if line.number > known:
            beyond |= {uid: (run, seq) for uid, run, seq, _ in line.said.get("runs", [])}
    here = dict(Run.objects.filter(uid__in=list(beyond)[:30_000]).values_list("uid", "seq"))
    return known, [
        {"run": run, "uid": uid, "here": here.get(uid, 0), "outside": seq}
        for uid, (run, seq) in sorted(beyond.items(), key=lambda item: item[1])
        if here.get(uid, 0) < seq
    ]
