"""What a draft of the policy would have said about calls that were really made. Nothing runs, nothing is written."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BooleanField, Case, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.catalog import spec
from runs.engine.limits import SECOND
from runs.engine.policy import STRICTNESS, Policy, judge
from runs.journal.lease import now
from runs.models import Call
from runs.queries import words
from runs.queries.policies import VERDICT

DAYS, MOST, SAMPLES = 30, 1000, 5
DAY = 86_400 * SECOND
NOW: dict[str, Any] = {
    "allow": gettext_lazy("allowed now"), "ask": gettext_lazy("asked now"), "deny": gettext_lazy("denied now"),
}  # fmt: skip


@dataclass(frozen=True)
class Past:
    """A call as it was made: what is needed to judge it again."""

    run: int
    turn: int
    ordinal: int
    tool: str
    arguments: Mapping[str, Any]
    starter: int
    unattended: bool

    @property
    def place(self) -> str:
        """R-12 #3.1"""
        return f"R-{self.run} #{self.turn}.{self.ordinal}"

    @property
    def headline(self) -> str:
        """What it did, in words made by code."""
        return words.headline(self.tool, dict(self.arguments))


def past_calls(tool: str = "") -> list[Past]:
    """The newest `MOST` judged calls of runs that were started in the last `DAYS` days: one query."""
    unattended = Case(
        When(run__state__contains='"un":true', then=Value(True)), default=False, output_field=BooleanField()
    )
    rows = Call.objects.filter(run__started_at__gte=now() - DAYS * DAY).exclude(effect="host")
    rows = rows.exclude(status__in=("invalid", "proposed"))
    if tool:
        rows = rows.filter(tool=tool)
    rows = rows.annotate(unattended=unattended).order_by("-run_id", "-turn", "-ordinal")
    columns = ("run_id", "turn", "ordinal", "tool", "arguments", "run__starter_id", "unattended")
    return [_past(*row) for row in rows.values_list(*columns)[:MOST]]


def _past(run: int, turn: int, ordinal: int, tool: str, arguments: str, starter: int, unattended: bool) -> Past:
    return Past(run, turn, ordinal, tool, json.loads(arguments), starter, unattended)


def verdict(call: Past, policy: Policy) -> str:
    """What a policy says about a past call; a call whose tool is gone would be denied."""
    known = spec(call.tool)
    if known is None:
        return "deny"
    return judge(known, call.arguments, policy, starter=call.starter, unattended=call.unattended).verdict


@dataclass(frozen=True)
class Cell:
    """How many calls went from one verdict to another; `turn` is same, stricter or looser."""

    n: int
    turn: str

    @property
    def tone(self) -> str:
        """Looser is where the risk is."""
        return {"stricter": "caution", "looser": "danger"}.get(self.turn, "") if self.n else ""

    @property
    def word(self) -> str:
        """For those who see no colour."""
        if not self.n:
            return _("none")
        return {"same": _("same"), "stricter": _("stricter"), "looser": _("looser")}[self.turn]


@dataclass
class Rehearsal:
    """`rows`: for each verdict by the old policy, in words, the cells by the new one; samples, looser first."""

    total: int
    rows: list[tuple[Any, list[Cell]]] = field(default_factory=list)
    looser: int = 0
    stricter: int = 0
    samples: list[tuple[Past, Any, Any, str]] = field(default_factory=list)
    most: bool = False


def rehearse(old: Policy, new: Policy, calls: list[Past]) -> Rehearsal:
    """Judge past calls by both policies."""
    told = [(call, verdict(call, old), verdict(call, new)) for call in calls]
    counts = Counter((was, would) for _call, was, would in told)
    moved = sorted(
        ((call, was, would) for call, was, would in told if was != would), key=lambda m: _turn(m[1], m[2]) != "looser"
    )
    rows = [(NOW[was], [Cell(counts[was, would], _turn(was, would)) for would in VERDICT]) for was in VERDICT]
    turns = Counter(_turn(was, would) for _call, was, would in told)
    samples = [(call, VERDICT[was], VERDICT[would], _turn(was, would)) for call, was, would in moved[:SAMPLES]]
    return Rehearsal(len(calls), rows, turns["looser"], turns["stricter"], samples, len(calls) == MOST)


def _turn(was: str, would: str) -> str:
    if was == would:
        return "same"
    return "stricter" if STRICTNESS[would] > STRICTNESS[was] else "looser"


def matched(policy: Policy, calls: list[Past]) -> dict[str, int]:
    """For each rule, how many of these calls it speaks about."""
    return {rule.id: sum(rule.applies(call.tool, call.arguments) for call in calls) for rule in policy.rules}
