"""The catalogue of models and the budgets, as admins see them."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from runs.journal.lease import now
from runs.models import Account, Agent, Budget, ModelEntry
from runs.queries.costs import DAY, day_of

KIND_WORDS: dict[str, Any] = {
    "input": _("Input"), "output": _("Output"), "cache_read": _("Cache read"),
    "cache_write_5m": _("Cache write, 5 min"), "cache_write_1h": _("Cache write, 1 h"),
    "searches": _("Web searches, per million"),
}  # fmt: skip
SCOPES: dict[str, Any] = {
    "day": _("Whole installation"), "agent": _("Agent"), "person": _("Runs started by"),
}  # fmt: skip
LAST = 20


def latest() -> list[ModelEntry]:
    """The current version of every model, those that may be chosen first: one query."""
    found: dict[str, ModelEntry] = {}
    for entry in ModelEntry.objects.select_related("author").order_by("name", "number"):
        found[entry.name] = entry
    return sorted(found.values(), key=lambda entry: (not entry.offered, entry.name))


@dataclass(frozen=True)
class ModelSheet:
    """A model: its current version, and all versions, newest first."""

    entry: ModelEntry
    versions: list[ModelEntry]
    prices: list[tuple[Any, int | None, int | None]]


def sheet(name: str) -> ModelSheet | None:
    """The model of this name; None if there is none. `prices` are (kind in words, price, price beyond the step)."""
    versions = list(ModelEntry.objects.filter(name=name).select_related("author").order_by("-number")[:LAST])
    if not versions:
        return None
    entry = versions[0]
    prices = [(word, entry.prices.get(kind), entry.beyond.get(kind)) for kind, word in KIND_WORDS.items()]
    return ModelSheet(entry, versions, prices)


@dataclass(frozen=True)
class BudgetRow:
    """A budget in force: what for, and what is used of it today (settled and reserved), in micro-dollars."""

    budget: Budget
    scope: Any
    whom: str
    used: int

    @property
    def left(self) -> int:
        """What is still free today."""
        return max(0, (self.budget.limit or 0) - self.used)

    @property
    def near(self) -> int:
        """From where on it is close to its end."""
        return (self.budget.limit or 0) * 8 // 10


def budgets() -> tuple[str, list[BudgetRow]]:
    """Today (UTC, ISO) and the budgets of days that are in force; those of runs stand on their pages."""
    day, found = now() // DAY, {}
    for budget in Budget.objects.exclude(scope="run").select_related("author").order_by("pk"):
        found[budget.scope, budget.key] = budget
    used = {(a.scope, a.key): a.used for a in Account.objects.filter(day=day)}
    agents, people = dict(Agent.objects.values_list("pk", "name")), _names(found)
    rows = [
        BudgetRow(one, SCOPES[scope], (agents if scope == "agent" else people).get(key, ""), used.get((scope, key), 0))
        for (scope, key), one in found.items()
        if one.limit is not None
    ]
    order = list(SCOPES)
    return day_of(day), sorted(rows, key=lambda row: (order.index(row.budget.scope), row.whom))


def history() -> list[tuple[Budget, Any, str]]:
    """The last changes of budgets, newest first: (row, scope in words, whom)."""
    rows = list(Budget.objects.exclude(scope="run").select_related("author").order_by("-pk")[:LAST])
    agents = dict(Agent.objects.values_list("pk", "name"))
    people = _names({(row.scope, row.key): row for row in rows})
    return [(row, SCOPES[row.scope], (agents if row.scope == "agent" else people).get(row.key, "")) for row in rows]


def _names(found: dict[tuple[str, int], Budget]) -> dict[int, str]:
    ids = [key for scope, key in found if scope == "person"]
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "username"))


def places() -> list[tuple[str, str]]:
    """What a budget may be for, as choices: ``scope:id`` and words."""
    agents = [
        (f"agent:{pk}", _("Agent: {name}").format(name=name)) for pk, name in Agent.objects.values_list("pk", "name")
    ]
    people = User.objects.filter(is_active=True, groups__name="operator").order_by("username").distinct()[:200]
    return [
        ("day:0", str(SCOPES["day"])),
        *agents,
        *((f"person:{p.pk}", _("Runs of {name}").format(name=p.username)) for p in people),
    ]
