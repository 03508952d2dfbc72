"""Who is alive: every process writes a heartbeat row, and /healthz reads them.

A row, not a ping: it is the same for one machine and for many, and it tells nothing but the truth that the process can
still reach the database.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Max
from django.utils.translation import gettext as _

from runs.models import Heartbeat, SafeMode

log = logging.getLogger(__name__)
KINDS = ("worker", "sweeper")  # a web process answers by itself
_hearts: list[Heart] = []


def now_us() -> int:
    """Integer microseconds, as everywhere."""
    return time.time_ns() // 1000


class Heart(threading.Thread):
    """Writes one row again and again until the process ends."""

    def __init__(self, kind: str) -> None:
        super().__init__(name=f"heart-{kind}", daemon=True)
        self.kind = kind
        self.process = _process(os.getpid())
        self.stopped = threading.Event()
        self.trouble = ""

    def run(self) -> None:
        """Beat; a database that is away costs a line in the log, never the process."""
        self.attempt()
        while not self.stopped.wait(settings.AGENTOPS_BEAT):
            self.attempt()

    def attempt(self) -> None:
        """One beat, its connection given back at once."""
        try:
            beat(self.kind, self.process, self.trouble)
        except DatabaseError as error:
            log.warning("heartbeat of %s not written: %s", self.kind, error)
        finally:
            connection.close()

    def stop(self) -> None:
        """End the thread and take the row away, so that nobody waits for it to go stale."""
        self.stopped.set()
        try:
            Heartbeat.objects.filter(kind=self.kind, ident=self.process).delete()
        except DatabaseError as error:
            log.warning("heartbeat of %s not removed: %s", self.kind, error)
        finally:
            connection.close()


def start_heart(kind: str) -> Heart:
    """Let this process be seen as `kind` ("web", "worker" or "sweeper") until it ends; again in a process: no-op.
    What the heart carries as `trouble` is told with every beat.

    The thread writes the first row too: the caller may be an event loop, where the ORM is refused.
    """
    for heart in _hearts:
        if heart.kind == kind and heart.is_alive():
            return heart
    heart = Heart(kind)
    _hearts.append(heart)
    heart.start()
    return heart


def stop_hearts() -> None:
    """Called by a process that ends in order."""
    while _hearts:
        _hearts.pop().stop()


def beat(kind: str, ident: str, trouble: str = "") -> None:
    """Write the row of one process and drop rows that nobody has written for ten stale times."""
    at = now_us()
    Heartbeat.objects.bulk_create(
        [Heartbeat(kind=kind, ident=ident, at=at, trouble=trouble)],
        update_conflicts=True,
        unique_fields=["kind", "ident"],
        update_fields=["at", "trouble"],
    )
    Heartbeat.objects.filter(at__lt=at - int(settings.AGENTOPS_STALE * 10_000_000)).delete()


def snapshot() -> dict[str, Any]:
    """What /healthz answers: each part with `ok`, its age in seconds and, where it is not ok, what to do."""
    parts: dict[str, dict[str, Any]] = {"web": {"ok": True, "age": 0.0}, "database": {"ok": True}}
    try:
        newest = dict(Heartbeat.objects.filter(kind__in=KINDS).values_list("kind").annotate(newest=Max("at")))
    except DatabaseError as error:
        log.error("healthz cannot read the database: %s", error)
        advice = _("The database does not answer: look at its server and at DATABASE_URL; details are in the log.")
        parts["database"] = {"ok": False, "what_to_do": advice}
        newest = {}
    for kind in KINDS:
        parts[kind] = _part(kind, newest.get(kind))
    parts["record"] = _record() if parts["database"]["ok"] else {"ok": False}
    return {"ok": all(part["ok"] for part in parts.values()), **parts}


def serves(found: dict[str, Any]) -> bool:
    """Whether people can be sent here: trouble with the record is told, and is mended on these very pages."""
    return all(part["ok"] for name, part in found.items() if name not in ("ok", "record"))


def _record() -> dict[str, Any]:
    if SafeMode.objects.filter(in_force=True).exists():
        advice = _("Safe mode: the database is older than its record outside. An admin decides on the page Safe mode.")
        return {"ok": False, "what_to_do": advice}
    alive = Heartbeat.objects.filter(at__gte=now_us() - int(settings.AGENTOPS_STALE * 1_000_000))
    trouble = alive.exclude(trouble="").values_list("trouble", flat=True).first()
    return {"ok": False, "what_to_do": trouble} if trouble else {"ok": True}


def _part(kind: str, at: int | None) -> dict[str, Any]:
    age = None if at is None else round(max(0, now_us() - at) / 1_000_000, 1)
    if age is not None and age <= settings.AGENTOPS_STALE:
        return {"ok": True, "age": age}
    advice = {
        "worker": _("No worker is alive: start `celery -A agentops worker`, or `make up`. Runs wait until then."),
        "sweeper": _("No sweeper is alive: start `manage.py sweep`, or `make up`. Due runs wait until then."),
    }[kind]
    return {"ok": False, "age": age, "what_to_do": advice}


def forget(pids: Iterable[int]) -> None:
    """Drop the rows of this machine's killed processes: a start right after must not take them for the living."""
    Heartbeat.objects.filter(ident__in=[_process(pid) for pid in pids]).delete()


def _process(pid: int) -> str:
    return f"{socket.gethostname()[:60]}:{pid}"
