"""The sweep re-finds what nobody goes on with: every run that is runnable, overdue or abandoned, every look that is due
at a call that was presumed not executed, and acts on many runs. It only wakes; it never calls tools."""

import time

from django.conf import settings

from runs import notify
from runs.actions import bulk
from runs.audit import safe_mode
from runs.journal import lease


class Sweeper:
    """Wakes what is due, each run at most once per `AGENTOPS_WAKE_AGAIN` seconds. Several sweepers are harmless."""

    def __init__(self) -> None:
        """Nothing woken yet."""
        self.woken: dict[tuple[int | str, ...], float] = {}

    def sweep(self) -> list[int]:
        """Wake what is due; returns the ids of runs that were woken now. In safe mode nobody could claim: none."""
        if safe_mode.in_force():
            return []
        clock = time.monotonic()
        self.woken = {what: at for what, at in self.woken.items() if clock - at < settings.AGENTOPS_WAKE_AGAIN}
        due = [run for run in lease.due() if (run,) not in self.woken]
        looks = [call for call in lease.looks() if call not in self.woken]
        bulks = [one for one in bulk.due() if ("bulk", one) not in self.woken]
        for run in due:
            notify.wake_worker(run)
        for call in looks:
            notify.wake_watch(*call)
        for one in bulks:
            notify.wake_bulk(one)
        self.woken |= {(run,): clock for run in due} | dict.fromkeys(looks, clock)
        self.woken |= {("bulk", one): clock for one in bulks}
        return due
