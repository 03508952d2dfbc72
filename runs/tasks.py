"""Celery shells: a message only says "look at this run"."""

from celery import shared_task

from runs import runner


@shared_task(name="runs.advance", ignore_result=True)
def advance(run: int) -> None:
    """Advance a run as far as it goes."""
    runner.advance(run)
