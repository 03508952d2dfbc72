"""What requests to a model may cost, kept inside `append`: reserved before one goes out, settled at its end.

Accounts are locked in one order, so two workers never both take the last dollar. What nobody heard the end of keeps its
reservation, and so does a stream that was cut: more may be billed than was seen.
"""

from dataclasses import field
from typing import Any

from django.db.models import F, Q

from runs.engine.costs import bound, cost_of
from runs.engine.frozen import Frozen
from runs.engine.limits import SECOND
from runs.engine.state import RunState
from runs.models import Account, Budget, ModelEntry, Spend

DAY = 86_400 * SECOND
SLACK = 4_000  # bytes: what an API adds to a prompt by itself, such as its words about tools
Place = tuple[str, int, int]  # scope, key, day


class OverBudget(Exception):
    """A request does not fit, and nothing was written. The text names the budget, and is recorded with the stop."""


class Reserve(Frozen):
    """A request about to go out, and the most that it can cost (None: no price is known)."""

    turn: int
    attempt: int
    agent: int
    model: str
    day: int
    entry: int | None = None
    micro: int | None = None


class Settle(Frozen):
    """What came of a request: counts by kind, and `complete`."""

    turn: int
    attempt: int
    usage: dict[str, Any] = field(default_factory=dict)


def reserve(state: RunState, now: int, model: str, agent: int, size: int, most: int) -> Reserve:
    """The reservation of the open request: `size` is its bytes, `most` the tokens of the longest answer."""
    entry = ModelEntry.objects.filter(name=model).order_by("-number").first()
    micro = bound(size + SLACK, most, entry.tariff if entry else None)
    assert state.ask is not None, "reserved with the request"
    return Reserve(state.turn, state.ask.attempt, agent, model, now // DAY, entry.pk if entry else None, micro)


def write(run: int, state: RunState, money: list[Reserve | Settle]) -> None:
    """Reserve and settle, in the transaction of an append that holds the run's row. Raises `OverBudget`."""
    changes: dict[Place, int] = {}
    limits: dict[Place, int] = {}
    for one in money:
        if isinstance(one, Settle):
            _settle(run, one, changes)
            continue
        row = Spend(
            run_id=run, turn=one.turn, attempt=one.attempt, entry_id=one.entry, agent=one.agent, day=one.day,
            starter=state.starter, reserved=one.micro,
        )  # fmt: skip
        limits = _limits(row)
        if one.micro is None and limits:
            raise OverBudget(f"no price is known of {one.model}, and {_named(min(limits))} is set")
        row.save(force_insert=True)
        _change(changes, row, one.micro)
    _move(changes, limits)


def _settle(run: int, one: Settle, changes: dict[Place, int]) -> None:
    rows = Spend.objects.filter(run=run, turn=one.turn, attempt=one.attempt, settled=False)
    row = rows.select_related("entry").first()
    if row is None:
        return
    cost = cost_of(one.usage, row.entry.tariff if row.entry else None)
    row.usage = {kind: n for kind, n in one.usage.items() if n or kind == "complete"}
    row.cost, row.estimate, row.settled = cost.micro, cost.estimate, True
    row.save(update_fields=["usage", "cost", "estimate", "settled"])
    if cost.micro is not None and not cost.estimate and row.reserved is not None:
        _change(changes, row, cost.micro - row.reserved)


def _places(row: Spend) -> list[Place]:
    return [
        ("agent", row.agent, row.day),
        ("day", 0, row.day),
        ("person", row.starter, row.day),
        ("run", row.run_id, 0),
    ]


def _change(changes: dict[Place, int], row: Spend, micro: int | None) -> None:
    for place in _places(row) if micro else ():
        changes[place] = changes.get(place, 0) + (micro or 0)


def _limits(row: Spend) -> dict[Place, int]:
    """The limits that a request must fit: the last word on each of its places."""
    wanted = Q()
    for scope, key, _day in _places(row):
        wanted |= Q(scope=scope, key=key)
    last = {(b.scope, b.key): b.limit for b in Budget.objects.filter(wanted).order_by("pk")}
    return {place: limit for place in _places(row) if (limit := last.get(place[:2])) is not None}


def _move(changes: dict[Place, int], limits: dict[Place, int]) -> None:
    accounts = [Account(scope=scope, key=key, day=day) for scope, key, day in sorted(changes)]
    Account.objects.bulk_create(accounts, ignore_conflicts=True)
    for place, change in sorted(changes.items()):
        scope, key, day = place
        rows = Account.objects.filter(scope=scope, key=key, day=day)
        fits = rows.filter(used__lte=limits[place] - change) if place in limits else rows
        if not fits.update(used=F("used") + change):
            left = limits[place] - rows.values_list("used", flat=True)[0]
            why = f"{_named(place)}, {_usd(limits[place])}, has {_usd(max(left, 0))} left; this may cost {_usd(change)}"
            raise OverBudget(why)


def _named(place: Place) -> str:
    scope, key, _day = place
    return {
        "run": "the budget of this run", "day": "the budget of this installation for the day",
        "agent": f"the budget of agent {key} for the day", "person": f"the budget of person {key} for the day",
    }[scope]  # fmt: skip


def _usd(micro: int) -> str:
    return f"${micro / 1_000_000:.4f}"
