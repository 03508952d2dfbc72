"""Hints after commit: wake a worker, nudge watchers. They may be lost, doubled or late without effect.

Tasks are reached by name, so that nothing below the tasks imports them. A broker that is down must never undo or
delay what was committed: the sweep finds the run.
"""

import asyncio
import logging
import threading
from uuid import uuid4

from celery import current_app
from channels.layers import get_channel_layer
from kombu.exceptions import OperationalError

from runs.loops import run_soon

log = logging.getLogger(__name__)
ADVANCE, WATCH, BULK = "runs.advance", "runs.watch", "runs.bulk"
GAP = 0.02  # seconds; a frame of a screen is about as long
_lock = threading.Lock()
_waiting: dict[str, tuple[int, int] | None] = {}


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
    run_soon(asyncio.to_thread(_publish, ADVANCE, run))


def wake_watch(run: int, turn: int, ordinal: int) -> None:
    """Ask for a worker to look again for a call that was presumed not executed."""
    run_soon(asyncio.to_thread(_publish, WATCH, run, turn, ordinal))


def wake_bulk(bulk: int) -> None:
    """Ask for a worker to go on with an act on many runs."""
    run_soon(asyncio.to_thread(_publish, BULK, bulk))


def _publish(task: str, *args: int) -> None:
    try:
        current_app.send_task(task, args=args, ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("no %s for %s, the sweep will find it: %s", task, args[0], error)


def nudge(to: str, run: int, seq: int) -> None:
    """Tell the watchers of a group to look again: at once, and then at most once per `GAP` while news goes on."""
    with _lock:
        idle = to not in _waiting
        _waiting[to] = None if idle else (run, seq)
    if idle:
        run_soon(_tell(to, (run, seq)), seconds=None)


async def _tell(to: str, news: tuple[int, int] | None) -> None:
    layer = get_channel_layer()
    try:
        while news is not None:
            message = {"type": "news", "to": to, "run": news[0], "seq": news[1], "id": uuid4().hex}
            await asyncio.wait_for(layer.group_send(to, message), 5)
            await asyncio.sleep(GAP)
            with _lock:  # looked at and let go in one step, or news in between would wait for ever
                if (news := _waiting.pop(to)) is not None:
                    _waiting[to] = None
    except BaseException:
        _waiting.pop(to, None)
        raise
