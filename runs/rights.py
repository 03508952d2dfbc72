"""Who may do what, in one place for pages, sockets, API and actions (spine.md 6).

All three groups see all runs; operators start and decide; admins set the limits; auditors read and write notes. An
admin decides only if an operator too. A person without a group sees nothing, and cannot tell it from what is absent.
"""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User

GROUPS = ("operator", "auditor", "admin")
ACTS: dict[str, frozenset[str]] = {
    "see": frozenset(GROUPS),
    "start": frozenset({"operator"}),
    "decide": frozenset({"operator"}),
    "steer": frozenset({"operator"}),
    "note": frozenset({"operator", "auditor"}),
    "close_incident": frozenset({"operator", "admin"}),
    "sign_off": frozenset({"admin"}),
    "accept_restore": frozenset({"admin"}),
    "set_policy": frozenset({"admin"}),
    "set_access": frozenset({"admin"}),
}


def groups_of(person: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """Names of the groups that an active person is in."""
    if not isinstance(person, User) or not person.is_active:
        return frozenset()
    return frozenset(person.groups.filter(name__in=GROUPS).values_list("name", flat=True))


def admins(most: int = 3) -> list[str]:
    """Who could change somebody's groups: names of a few active admins."""
    found = User.objects.filter(is_active=True, groups__name="admin").order_by("username")
    return list(found.values_list("username", flat=True)[:most])


def may(person: AbstractBaseUser | AnonymousUser, act: str) -> bool:
    """Whether a person may do `act`, one of `ACTS`. Read anew each time: rights may have changed since."""
    return not ACTS[act].isdisjoint(groups_of(person))
