"""Who is in which group: admins change it, each change with its author and reason on record."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import transaction

from runs.actions.acting import Refused, found, need, said
from runs.journal.lease import now
from runs.models import AccessChange
from runs.rights import GROUPS


@transaction.atomic
def set_access(author: User, person_id: int, groups: Iterable[str], *, active: bool, reason: str) -> AccessChange:
    """Put a person into exactly these of our groups, or switch them off; other groups of theirs stay.

    It counts from the next act on: rights are read anew each time, and votes of who lost the right do not count at a
    start. Raises `Refused`: 403 without the right, 404 absent, 409 if nothing changes or no admin would be left, 422
    without a reason.
    """
    need(author, "set_access")
    reason = said(reason, empty="Say why: the reason goes into the record.")
    wanted = frozenset(groups)
    if unknown := wanted - set(GROUPS):
        raise Refused("There is no group {names}.", 422, names=", ".join(sorted(unknown)))
    ours = {group.name: group for group in Group.objects.select_for_update().filter(name__in=GROUPS).order_by("pk")}
    person = found(User.objects.select_for_update(), person_id)
    was, was_active = sorted(person.groups.filter(name__in=GROUPS).values_list("name", flat=True)), person.is_active
    if (was, was_active) == (sorted(wanted), active):
        raise Refused("Nothing was changed: it stands like this already.")
    if "admin" in was and was_active and not (active and "admin" in wanted):
        _someone_stays(person)
    person.groups.remove(*(group for name, group in ours.items() if name not in wanted))
    person.groups.add(*(ours[name] for name in wanted))
    person.is_active = active
    person.save(update_fields=["is_active"])
    return AccessChange.objects.create(
        person=person, author=author, at=now(), was=was, became=sorted(wanted), was_active=was_active,
        became_active=active, reason=reason,
    )  # fmt: skip


def _someone_stays(leaving: User) -> None:
    """Without an admin nobody could ever make one here again."""
    if not User.objects.filter(is_active=True, groups__name="admin").exclude(pk=leaving.pk).exists():
        raise Refused("{name} is the last admin: make somebody else one first.", name=leaving.username)
