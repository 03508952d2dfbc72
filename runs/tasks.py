"""Celery shells: a message only says "look at this run"."""

from celery import shared_task

from runs import notify, runner
from runs.actions import bulk as bulks
from runs.runner import watch as watching


@shared_task(name="runs.advance", ignore_result=True)
def advance(run: int) -> None:
    """Advance a run as far as it goes."""
    runner.advance(run)


@shared_task(name="runs.watch", ignore_result=True)
def watch(run: int, turn: int, ordinal: int) -> None:
    """Look again for a call that was presumed not executed."""
    watching.watch(run, turn, ordinal)


@shared_task(name="runs.bulk", ignore_result=True)
def bulk(bulk: int) -> None:
    """Do some of an act on many runs, then let others have a turn."""
    if bulks.step(bulk):
        notify.wake_bulk(bulk)
