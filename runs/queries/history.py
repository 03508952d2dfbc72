"""What agents already did to the objects of a call, in all runs, and the refused proposal that a new one follows."""

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.models import Approval, Call, CallObject, Decision
from runs.queries import words
from runs.queries.cards import Line, compared
from runs.queries.display import one_line, visible

STEPS, HISTORY, LOOKED_AT = 5, 10, 20


@dataclass
class Step:
    """A call in short."""

    call: Call
    sign: words.Sign
    text: str
    came_to: str

    @property
    def at(self) -> int:
        """When it ended or began, microseconds."""
        return self.call.ended_at or self.call.started_at or 0


@dataclass
class Predecessor:
    """A proposal of the same tool on the same object that people refused, and how this one differs from it."""

    approval: Approval
    call: Call
    headline: str
    decision: Decision | None
    lines: list[Line]


def step(call: Call) -> Step:
    """A call in short."""
    text = words.headline(call.tool, call.values()) if call.status != "invalid" else visible(call.tool)
    sign = words.call_sign(call.status, call.outcome, call.tool)
    why = call.why if call.status in ("invalid", "denied") else ""
    return Step(call, sign, text, one_line(" · ".join(x for x in (call.effect_ref, call.detail, why) if x), 160))


def steps(call: Call) -> list[Step]:
    """The last steps of its run before a call."""
    earlier = Q(turn__lt=call.turn) | Q(turn=call.turn, ordinal__lt=call.ordinal)
    rows = Call.objects.filter(earlier, run=call.run_id).order_by("-turn", "-ordinal")[:STEPS]
    return [step(row) for row in reversed(rows)]


def on_its_objects(call: Call) -> QuerySet[Call]:
    """Other calls that touch an object of this one, of all runs, newest first."""
    place: dict[str, Any] = {name: OuterRef(name) for name in ("run_id", "turn", "ordinal")}
    named = CallObject.objects.filter(key__in=call.objects_touched, **place)
    rows = Call.objects.filter(Exists(named)).exclude(run=call.run_id, turn=call.turn, ordinal=call.ordinal)
    return rows.order_by("-run_id", "-turn", "-ordinal")


def _names_still(call: Call, other: Call) -> bool:
    """The index may hold a key that a call named before an edit."""
    return not set(call.objects_touched).isdisjoint(other.objects_touched)


def history(call: Call) -> list[Step]:
    """Effects on the objects of a call, in this run and in others; newest first."""
    if not call.objects_touched:
        return []
    rows = on_its_objects(call).exclude(effect__in=("read", "host"))
    done = rows.filter(status__in=("done", "unknown", "executing", "not_executed"))
    return [step(row) for row in done.select_related("run")[:HISTORY] if _names_still(call, row)]


def predecessor(call: Call, asked_at: int) -> Predecessor | None:
    """The newest proposal of the same tool on the same object that was refused before `asked_at`."""
    if not call.objects_touched:
        return None
    refused = list(on_its_objects(call).filter(tool=call.tool, status="refused")[:LOOKED_AT])
    places = Q(pk__in=[])
    for other in refused:
        if _names_still(call, other):
            places |= Q(run=other.run_id, turn=other.turn, ordinal=other.ordinal)
    asked = Approval.objects.filter(places, status="rejected", closed_at__lte=asked_at) if refused else None
    last = asked.order_by("-closed_at").first() if asked is not None else None
    if last is None:
        return None
    was = next(c for c in refused if (c.run_id, c.turn, c.ordinal) == (last.run_id, last.turn, last.ordinal))
    lines = compared(json.loads(was.arguments), json.loads(call.arguments))
    decision = last.decisions.select_related("person").order_by("at").first()
    return Predecessor(last, was, words.headline(was.tool, was.values()), decision, lines)
