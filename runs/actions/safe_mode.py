"""An admin accepts a database that was restored: what may have been done already is put to people, the rest goes on."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.actions.acting import Refused, need, said
from runs.audit import checkpoints, safe_mode
from runs.engine.machines import RUN_ENDS
from runs.engine.next_step import Stop, stop_entry
from runs.engine.state import UnreadableState
from runs.journal.append import Draft, append
from runs.journal.integrity import picture_of
from runs.journal.lease import now
from runs.models import Run, SafeMode

DETAIL = "the database was restored from a backup; what this run did after that is not in it"


def accept(person: User, reason: str, *, hold_all: bool = True) -> SafeMode:
    """End safe mode. Runs that had gone further are stopped for people to look at; with `hold_all` every live run is,
    for the last minute before the loss is in no checkpoint.

    The acceptance is the next checkpoint, so it is chained and stands outside. Broken off, it can be done again.
    Raises `Refused`: 403 without the right, 409 if safe mode is not in force, 422 without a reason.
    """
    need(person, "accept_restore")
    reason = said(reason, empty="Say why this state is right: the reason goes into the record.")
    if (found := safe_mode.in_force()) is None:
        raise Refused("Safe mode is not in force: there is nothing to accept.")
    further = [entry["uid"] for entry in found.further]
    live = Run.objects.exclude(status__in=RUN_ENDS)
    held = [pk for pk, uid in live.values_list("pk", "uid") if hold_all or uid in further]
    for pk in held:
        _hold(pk)
    return _close(found.pk, person, reason, len(held))


@transaction.atomic
def _hold(pk: int) -> None:
    """Stop a run until a person has looked. One that this code cannot read is not advanced anyway."""
    run = Run.objects.select_for_update(of=("self",)).select_related("agent_version__agent").get(pk=pk)
    try:
        draft = Draft(picture_of(run), now())
    except UnreadableState:
        return
    state = draft.state
    if state.end or state.tampered or (state.stop and state.stop.reason == "restored"):
        return
    append(draft.put(stop_entry(state, Stop("restored", DETAIL))))


@transaction.atomic
def _close(pk: int, person: User, reason: str, held: int) -> SafeMode:
    last = checkpoints.locked_last()
    found = SafeMode.objects.filter(pk=pk, in_force=True).first()
    if found is None:
        raise Refused("Somebody else has just accepted it.")
    accepted = {"person": person.pk, "reason": reason, "held": held, "further": len(found.further)}
    accepted |= {"outside": found.head_number, "here": last.number}
    number = max(found.head_number, last.number) + 1
    checkpoints.add(number, bytes(found.head_hash).hex(), {"accepted": accepted}, resumes=found.known)
    found.in_force, found.ended_at, found.person, found.reason = False, now(), person, reason
    found.save(update_fields=["in_force", "ended_at", "person", "reason"])
    return found
