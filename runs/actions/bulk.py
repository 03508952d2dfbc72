"""One act on many runs: each is done by itself, through the act for one run, with the rights of who asked for it.

A worker takes the whole up for a while, does a few and gives it back. One that dies leaves it due again: what was done
is on record in the same transaction as the act itself, so nothing is done twice and nothing is left out.
"""

import time

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs import notify
from runs.actions.acting import Refused, found, need, not_in_safe_mode, said
from runs.actions.runs import cancel, pause
from runs.engine.events import UnknownEvent
from runs.engine.limits import SECOND
from runs.engine.machines import RUN_STOPS
from runs.engine.state import UnreadableState
from runs.journal.lease import now
from runs.models import Bulk, BulkItem, Run
from runs.models.bulk import MOST

STEP = 20  # of them before others get a turn
SECONDS = 1.0


def begin(*, person: User, kind: str, why: str, chosen: dict[int, str], request_key: str) -> Bulk:
    """Have many runs paused or cancelled. `chosen` says in which state each run was seen.

    The same `request_key` again returns what it began. Raises `Refused`.
    """
    need(person, "steer")
    not_in_safe_mode()
    why = said(why, empty="Say why these runs are cancelled." if kind == "cancel" else "")
    if not chosen:
        raise Refused("No run is chosen.", 422)
    if len(chosen) > MOST:
        raise Refused("At most {n} runs at once: narrow the filter.", 422, n=MOST)
    known = set(Run.objects.filter(pk__in=chosen).values_list("pk", flat=True))
    if unknown := sorted(chosen.keys() - known):
        raise Refused("There is no run R-{run}.", 422, run=unknown[0])
    try:
        with transaction.atomic():
            clock = now()
            bulk = Bulk.objects.create(
                kind=kind, person=person, why=why, request_key=request_key, started_at=clock, due_at=clock
            )
            BulkItem.objects.bulk_create(BulkItem(bulk=bulk, run_id=run, seen=seen) for run, seen in chosen.items())
            transaction.on_commit(lambda: notify.wake_bulk(bulk.pk))
    except IntegrityError:
        if earlier := Bulk.objects.filter(request_key=request_key, person=person).first():
            return earlier
        raise
    return bulk


def due(limit: int = 20) -> list[int]:
    """Ids of what somebody may take up now: new, given back, or left by a worker that died."""
    return list(Bulk.objects.filter(due_at__lte=now()).order_by("due_at").values_list("pk", flat=True)[:limit])


def step(bulk: int) -> bool:
    """Do some of what is left, unless another is at it; True if there is more to do."""
    clock = now()
    ahead = clock + int(settings.AGENTOPS_LEASE * SECOND)
    if not Bulk.objects.filter(pk=bulk, due_at__lte=clock).update(due_at=ahead):
        return False
    end = time.monotonic() + SECONDS
    items = BulkItem.objects.filter(bulk=bulk, result="").order_by("-run_id").values_list("pk", flat=True)
    for item in list(items[:STEP]):
        _do(item)
        if time.monotonic() > end:
            break
    more = items.exists()
    clock = now()
    still = Bulk.objects.filter(pk=bulk, ended_at=None)
    still.update(due_at=clock if more else None, ended_at=None if more else clock)
    return more


def stop(bulk_id: int, person: User) -> None:
    """Leave the rest as it is; what was done stays done."""
    need(person, "steer")
    with transaction.atomic():
        bulk = found(Bulk.objects.select_for_update(), bulk_id)
        if bulk.ended_at:
            raise Refused("It has already come to its end.")
        BulkItem.objects.filter(bulk=bulk, result="").update(result="left", at=now())
        bulk.stopper, bulk.ended_at, bulk.due_at = person, now(), None
        bulk.save(update_fields=["stopper", "ended_at", "due_at"])


@transaction.atomic
def _do(pk: int) -> None:
    """One run: the act and its result are one commit."""
    item = BulkItem.objects.select_for_update(of=("self",)).select_related("bulk__person").get(pk=pk)
    if item.result:
        return  # another had it, or it was left
    run = Run.objects.select_for_update(of=("self",)).get(pk=item.run_id)
    item.result, item.said = _act(item, run)
    item.at = now()
    item.save(update_fields=["result", "said", "at"])


def _act(item: BulkItem, run: Run) -> tuple[str, str]:
    """Result, and what there is to say of it: "already", the state as it is now, or why the act was refused."""
    bulk = item.bulk
    try:
        if not run.ended and (run.picture.paused if bulk.kind == "pause" else run.picture.cancel):
            return "done", "already"
        if sort_of(run.status) != sort_of(item.seen):
            return "skipped", run.status
        if bulk.kind == "pause":
            pause(run.pk, bulk.person)
        else:
            cancel(run.pk, bulk.person, bulk.why)
    except Refused as error:
        return "refused", str(error)
    except (UnreadableState, UnknownEvent):
        return "refused", "Other code recorded this run; nothing here touches it."
    return "done", ""


def sort_of(status: str) -> str:
    """What a person tells apart when choosing runs: at work, waiting for people, paused, stopped, or an end."""
    if status in ("queued", "running"):
        return "active"
    if status in ("waiting_approval", "waiting_input"):
        return "waiting"
    return "stopped" if status in RUN_STOPS else status
