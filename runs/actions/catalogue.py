"""Keep the catalogue of models and the budgets: each change is a new, immutable row with its author and reason."""

from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.actions.acting import Refused, need, said
from runs.actions.runs import resume, start_run
from runs.journal.lease import now
from runs.models import Agent, Budget, ModelEntry, Run
from runs.providers import PROVIDERS, REMOTE

WHY = "Say why: the reason goes into the record."


def set_model(person: User, name: str, content: dict[str, Any], reason: str, based_on: int) -> ModelEntry:
    """Add a version of ``provider:model``. `content` are fields of `ModelEntry`, prices in micro-dollars per million.

    `based_on` is the version that the person edited, 0 for a new model: if another came in between, nothing is written
    (409). Raises `Refused`.
    """
    need(person, "set_policy")
    reason = said(reason, empty=WHY)
    provider, _, model = name.partition(":")
    if not model or provider not in {*PROVIDERS, *REMOTE}:
        known = ", ".join([*PROVIDERS, *REMOTE])
        raise Refused("Write provider:model; the providers here are {known}.", 422, known=known)
    latest = ModelEntry.objects.filter(name=name).order_by("-number").first()
    if based_on != (latest.number if latest else 0):
        raise Refused("Version {n} of this model came in meanwhile: look at it, then change it again.",
                      n=latest.number if latest else 0)  # fmt: skip
    if latest and all(getattr(latest, field) == value for field, value in content.items()):
        raise Refused("Nothing was changed.", 422)
    try:
        with transaction.atomic():
            return ModelEntry.objects.create(
                name=name, number=based_on + 1, author=person, reason=reason, at=now(), **content
            )
    except IntegrityError:
        raise Refused("Version {n} of this model came in meanwhile: look at it, then change it again.",
                      n=based_on + 1) from None  # fmt: skip


def set_budget(person: User, scope: str, key: int, limit: int | None, reason: str) -> Budget:
    """Set what may be spent in a day, or by a run, in micro-dollars; None lifts it. It counts from the next request on.

    `key` is the id of an agent, person or run, 0 for the whole installation. Who may steer runs sets that of a run,
    an admin the others. Raises `Refused`.
    """
    need(person, "steer" if scope == "run" else "set_policy")
    reason = said(reason, empty=WHY)
    there = {"day": key == 0, "agent": Agent.objects.filter(pk=key).exists(),
             "run": Run.objects.filter(pk=key).exists(), "person": User.objects.filter(pk=key).exists()}  # fmt: skip
    if not there.get(scope):
        raise Refused("There is nothing here.", 404)
    if limit is not None and limit < 0:
        raise Refused("A budget is not negative.", 422)
    return Budget.objects.create(scope=scope, key=key, limit=limit, author=person, reason=reason, at=now())


@transaction.atomic
def start_within(budget: int | None, **given: Any) -> Run:
    """As `start_run`, with what the run may spend in all (micro-dollars), first request included. Raises `Refused`."""
    run = start_run(**given)
    if budget is not None and not Budget.objects.filter(scope="run", key=run.pk).exists():
        set_budget(run.starter, "run", run.pk, budget, "set at the start")
    return run


@transaction.atomic
def raise_budget(run_id: int, person: User, budget: int, why: str) -> None:
    """Let a run spend more; one that stopped at a budget tries again. Raises `Refused`."""
    current = Budget.objects.filter(scope="run", key=run_id).order_by("-pk").first()
    if current and current.limit is not None and budget <= current.limit:
        raise Refused("Limits can only be raised here: {names}.", 422, names="budget")
    set_budget(person, "run", run_id, budget, why)
    stop = Run.objects.get(pk=run_id).picture.stop
    if stop and stop.reason == "budget":
        resume(run_id, person)
