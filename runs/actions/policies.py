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
    current = Policy.objects.select_for_update().get(current=True)
    if current.number != based_on:
        raise Refused("Policy {n} was published meanwhile: compare, then publish again.", n=current.number)
    with refusing(BadPolicy):
        Parsed.load(current.number + 1, content)
    Policy.objects.filter(current=True).update(current=False)
    return Policy.objects.create(
        number=current.number + 1, content=content, current=True, author=person, reason=reason, at=now()
    )
