"""Hints after commit: wake a worker, nudge watchers. They may be lost, doubled or late without effect.

Tasks are reached by name, so that nothing below the tasks imports them. A broker that is down must never undo or
delay what was committed: the sweep finds the run.
"""

import asyncio
import logging

from celery import current_app
from channels.layers import get_channel_layer
from kombu.exceptions import OperationalError

from runs.loops import run_soon

log = logging.getLogger(__name__)
ADVANCE = "runs.advance"


def group(run: int) -> str:
    """Name of the group of a run's watchers."""
    return f"run-{run}"


INBOX = "inbox"


def appended(run: int, seq: int, *, wake: bool, inbox: bool) -> None:
    """Say that a run has news, that the inbox may have changed, and that somebody may advance the run."""
    nudge(group(run), run, seq)
    if inbox:
        nudge(INBOX, run, seq)
    if wake:
        wake_worker(run)


def wake_worker(run: int) -> None:
    """Ask for a worker to look at a run; from the sending thread, so that a broker that hangs delays nobody."""
    run_soon(asyncio.to_thread(_publish, run))


def _publish(run: int) -> None:
    try:
        current_app.send_task(ADVANCE, args=[run], ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("no wake for run %s, the sweep will find it: %s", run, error)


def nudge(to: str, run: int, seq: int) -> None:
    """Tell the watchers of a group to look again."""
    layer = get_channel_layer()
    if layer is not None:
        run_soon(layer.group_send(to, {"type": "news", "run": run, "seq": seq}))
