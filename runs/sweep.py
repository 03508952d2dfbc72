"""The sweep re-finds every run that is runnable, overdue or abandoned. It only wakes; it never calls tools."""

import time

from django.conf import settings

from runs import notify
from runs.audit import safe_mode
from runs.journal import lease


class Sweeper:
    """Wakes what is due, each run at most once per `AGENTOPS_WAKE_AGAIN` seconds. Several sweepers are harmless."""

    def __init__(self) -> None:
        """Nothing woken yet."""
        self.woken: dict[int, float] = {}

    def sweep(self) -> list[int]:
        """Wake what is due; returns the ids that were woken now. In safe mode nobody could claim, so none are."""
        if safe_mode.in_force():
            return []
        clock = time.monotonic()
        self.woken = {run: at for run, at in self.woken.items() if clock - at < settings.AGENTOPS_WAKE_AGAIN}
        due = [run for run in lease.due() if run not in self.woken]
        for run in due:
            notify.wake_worker(run)
            self.woken[run] = clock
        return due
