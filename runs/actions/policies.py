"""Set the limits: each change is a new, numbered, immutable version of the policy."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs.actions.acting import Refused, need, refusing, said
from runs.engine.policy import BadPolicy
from runs.engine.policy import Policy as Parsed
from runs.journal.lease import now
from runs.models import Policy


@transaction.atomic
def publish(person: User, content: dict[str, Any], reason: str, based_on: int) -> Policy:
    """Make `content` the current policy. `based_on` is the version that the person edited: if another came in
    between, nothing is written (409). Tightening reaches every call that has not started. Raises `Refused`.
    """
    need(person, "set_policy")
    reason = said(reason, empty="Say why: the reason goes into the record.")
    current = _locked()
    if current.number != based_on:
        raise Refused("Policy {n} was published meanwhile: compare, then publish again.", n=current.number)
    return _publish(current, person, content, reason)


@transaction.atomic
def switch(person: User, tool: str, *, off: bool, reason: str) -> Policy:
    """Switch a tool off or on again, ``*`` for all of them: one step from whatever is current, so it never conflicts.

    Raises `Refused`: 409 if it stands like that already, 403 without the right, 422 without a reason.
    """
    need(person, "set_policy")
    reason = said(reason, empty="Say why: the reason goes into the record.")
    current = _locked()
    switched = [name for name in current.content.get("off", []) if name != tool]
    if off == (tool in current.content.get("off", [])):
        raise Refused("It is switched off already.") if off else Refused("It is switched on already.")
    return _publish(current, person, {**current.content, "off": [*switched, tool] if off else switched}, reason)


@transaction.atomic
def bring_back(person: User, number: int, reason: str, based_on: int) -> Policy:
    """Publish the content of an older version again, as a new one; `based_on` as in `publish`. Raises `Refused`."""
    need(person, "set_policy")
    older = Policy.objects.filter(pk=number).first()
    if older is None:
        raise Refused("There is nothing here.", 404)
    if number == based_on:
        raise Refused("This version is the current one already.")
    return publish(person, older.content, reason, based_on)


def _locked() -> Policy:
    """The current version; nobody else publishes until the transaction ends.

    The lock is on the first version, which is there for ever: who waits for one that is replaced meanwhile finds none.
    """
    Policy.objects.select_for_update().earliest("number")
    return Policy.objects.get(current=True)


def _publish(current: Policy, person: User, content: dict[str, Any], reason: str) -> Policy:
    with refusing(BadPolicy):
        Parsed.load(current.number + 1, content)
    Policy.objects.filter(current=True).update(current=False)
    return Policy.objects.create(
        number=current.number + 1, content=content, current=True, author=person, reason=reason, at=now()
    )
