"""People: who is in which group, what each group may do, and what each person decided last."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Prefetch, Subquery
from django.utils.translation import gettext_lazy as _

from runs import rights
from runs.models import AccessChange, Decision, Run
from runs.queries.words import Sign

PAGE, LAST = 50, 10
ACTS: dict[str, Any] = {
    "see": _("See every run, its record and these pages"),
    "start": _("Start runs"),
    "decide": _("Approve, edit, reject, answer and say what happened"),
    "steer": _("Pause, resume, cancel and extend runs"),
    "note": _("Write notes to runs"),
    "close_incident": _("Close incidents"),
    "sign_off": _("Sign off a run whose record does not match"),
    "accept_restore": _("Accept a database that was restored"),
    "set_policy": _("Set verdicts, risks, limits and kill switches"),
    "set_access": _("Say who is in which group"),
}
GROUP: dict[str, tuple[Any, Any]] = {
    "operator": (_("Operator"), _("starts runs and decides what they ask")),
    "auditor": (_("Auditor"), _("reads everything and writes notes")),
    "admin": (_("Admin"), _("sets the limits: tools, policies, people")),
}
VOTE: dict[str, Sign] = {
    "approve": Sign(_("Approved"), "positive", "check"),
    "reject": Sign(_("Rejected"), "danger", "denied"),
}


def act_word(act: str) -> Any:
    """An act in words; one that has none yet by its name."""
    return ACTS.get(act, act.replace("_", " "))


@dataclass
class PersonRow:
    """A person in the list; `groups` are ours alone, `last` is when they decided last."""

    person: User
    groups: list[str]
    decisions: int
    last: int | None

    @property
    def words(self) -> list[Any]:
        """The groups in words."""
        return [GROUP[name][0] for name in self.groups]


@dataclass
class PeopleList:
    """A page of people by name; `after` is the name to go on from."""

    rows: list[PersonRow]
    after: str | None
    by_group: list[tuple[str, Any, Any, int]]
    none: int
    all: int


def people_list(group: str = "", after: str = "") -> PeopleList:
    """Keyset pages of `PAGE` by name; `group` is one of ours, "none" for those without, or empty for all."""
    rows = User.objects.filter(username__gt=after).order_by("username")
    if group == "none":
        rows = rows.exclude(groups__name__in=rights.GROUPS)
    elif group in rights.GROUPS:
        rows = rows.filter(groups__name=group)
    made = Decision.objects.filter(person=OuterRef("pk")).order_by().values("person")
    rows = rows.annotate(
        made=Subquery(made.annotate(n=Count("pk")).values("n")),
        last=Subquery(Decision.objects.filter(person=OuterRef("pk")).order_by("-at").values("at")[:1]),
    ).prefetch_related("groups")
    found = list(rows[: PAGE + 1])
    shown = [PersonRow(one, _groups(one), one.made or 0, one.last) for one in found[:PAGE]]
    active = User.objects.filter(is_active=True, groups__name__in=rights.GROUPS)
    sizes = dict(active.order_by().values_list("groups__name").annotate(n=Count("pk")))
    by_group = [(name, *GROUP[name], sizes.get(name, 0)) for name in rights.GROUPS]
    none = User.objects.exclude(groups__name__in=rights.GROUPS).count()
    return PeopleList(
        shown, found[PAGE - 1].username if len(found) > PAGE else None, by_group, none, User.objects.count()
    )


def _groups(person: User) -> list[str]:
    return [group.name for group in person.groups.all() if group.name in rights.GROUPS]


@dataclass(frozen=True)
class Right:
    """An act, whether the person may do it, and by which of their groups; `needs` are the groups that give it."""

    word: Any
    may: bool
    through: list[Any]
    needs: list[Any]


@dataclass
class PersonSheet:
    """One person: groups, rights with their reasons, last decisions, changes of access."""

    person: User
    groups: list[str]
    rights: list[Right]
    decisions: list[tuple[Decision, Sign]]
    made: int
    started: int
    changes: list[AccessChange]

    @property
    def words(self) -> list[Any]:
        """The groups in words."""
        return [GROUP[name][0] for name in self.groups]


def person_sheet(person_id: int) -> PersonSheet | None:
    """The person with this id, or None."""
    person = User.objects.prefetch_related(Prefetch("groups")).filter(pk=person_id).first()
    if person is None:
        return None
    groups = _groups(person)
    decisions = Decision.objects.filter(person=person)
    last = decisions.select_related("approval__run__agent_version__agent").order_by("-at")[:LAST]
    return PersonSheet(
        person, groups, [_right(act, groups if person.is_active else []) for act in rights.ACTS],
        [(one, VOTE[one.vote]) for one in last], decisions.count(), Run.objects.filter(starter=person).count(),
        list(AccessChange.objects.filter(person=person).select_related("author")[:LAST]),
    )  # fmt: skip


def _right(act: str, groups: list[str]) -> Right:
    needs = [name for name in rights.GROUPS if name in rights.ACTS[act]]
    through = [GROUP[name][0] for name in needs if name in groups]
    return Right(act_word(act), bool(through), through, [GROUP[name][0] for name in needs])


def role_table() -> list[tuple[Any, list[bool]]]:
    """Every act in words, and for each of our groups whether it gives it."""
    return [(act_word(act), [name in having for name in rights.GROUPS]) for act, having in rights.ACTS.items()]


__all__ = [
    "GROUP", "PeopleList", "PersonSheet", "act_word", "people_list", "person_sheet", "role_table",
]  # fmt: skip
