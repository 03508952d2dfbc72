"""The right to advance a run for a while: claim by compare-and-set, beat, renew; and what is due. Database time."""

import time
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Case, F, Value, When

from runs.engine.limits import SECOND
from runs.journal.append import Picture, renewed
from runs.journal.faultpoint import faultpoint
from runs.models import Call, Run

QUICK = SECOND // 5  # an answer within this time tells the database's clock well enough
PG_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def now() -> int:
    """The database's clock in microseconds; a file database has the clock of this host."""
    if connection.vendor != "postgresql":
        return time.time_ns() // 1000
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {PG_NOW}")
        return int(cursor.fetchone()[0])


def local() -> int:
    """This host's clock in microseconds: it is never set, and goes on while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1000


def claim(run: int) -> tuple[Run, int] | None:
    """Take the lease of a run that is due; returns its row and the skew, or None if another was first.

    The skew makes `local()` the database's time: see `_skew`.

    Only `due_at <= now` lets anyone in, so a duplicate message costs nothing, and in safe mode nobody.
    A lease that had lapsed counts as a crash of its holder; the new epoch fences it.
    """
    before = local()
    clock = PG_NOW if connection.vendor == "postgresql" else str(now())
    sql = f"""UPDATE runs_run SET epoch = epoch + 1,
        status = CASE WHEN status IN ('queued', 'waiting_approval', 'waiting_input') THEN 'running' ELSE status END,
        crashes = crashes + CASE WHEN lease_until IS NULL THEN 0 ELSE 1 END,
        lease_until = {clock} + %s, due_at = {clock} + %s
        WHERE id = %s AND due_at <= {clock} AND NOT EXISTS (SELECT 1 FROM runs_safemode WHERE in_force)
        RETURNING epoch, {clock}"""
    length = int(settings.AGENTOPS_LEASE * SECOND)
    with connection.cursor() as cursor:
        cursor.execute(sql, [length, length, run])
        row = cursor.fetchone()
    if row is None:
        return None
    skew = _skew(before, int(row[1]))
    faultpoint("after_claim")
    found = Run.objects.select_related("agent_version__agent").get(pk=run)
    return (found, skew) if found.epoch == row[0] else None


def _skew(before: int, clock: int) -> int:
    """What makes `local()` the database's time, which was `clock` at some time after `before`.

    Counted from before the database was asked: a process that is frozen in between then believes that its lease ended
    too early, never too late. An answer that was long in coming would put its times far into the future, so it is
    asked once more.
    """
    if local() - before <= QUICK:
        return clock - before
    before = local()
    return now() - before


def put_back(run: Run) -> None:
    """Give back a lease with nothing done and no crash counted; the run is due again for others after a while."""
    later = now() + int(settings.AGENTOPS_WAKE_AGAIN * SECOND)
    status = Case(When(status="running", then=Value("queued")), default=F("status"))
    mine = Run.objects.filter(pk=run.pk, epoch=run.epoch, lease_until__isnull=False)
    mine.update(lease_until=None, due_at=later, status=status)


def beat(picture: Picture) -> tuple[int, int | None, int]:
    """(seq, lease_until, skew) as they stand; `lease_until` is None when the lease is no longer ours.

    Reads only, unless less than half of the lease is left.
    """
    row = Run.objects.filter(pk=picture.run, epoch=picture.epoch).values("seq", "lease_until").first()
    before = local()
    clock = now()
    skew = _skew(before, clock)
    if row is None or row["lease_until"] is None:
        return picture.seq, None, skew
    until = renewed(row["lease_until"], clock)
    mine = Run.objects.filter(pk=picture.run, epoch=picture.epoch, lease_until__isnull=False)
    ours = until == row["lease_until"] or mine.update(lease_until=until, due_at=until)
    return row["seq"], until if ours else None, skew


def due(limit: int = 500) -> list[int]:
    """Ids of runs that are runnable, overdue or abandoned, the longest waiting first. Nothing selects on status."""
    rows: Any = Run.objects.filter(due_at__lte=now()).order_by("due_at", "id").values_list("pk", flat=True)
    return list(rows[:limit])


def looks(limit: int = 20) -> list[tuple[int, int, int]]:
    """Calls (run, turn, ordinal) that were presumed not executed and are to be looked for again now.

    Few at a time: each may take its whole deadline, and runs that are due must not stand behind them.
    """
    rows = Call.objects.filter(watch_at__lte=now()).order_by("watch_at").values_list("run_id", "turn", "ordinal")
    return list(rows[:limit])
