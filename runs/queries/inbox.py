"""What waits for a person, with the reason why this viewer can or cannot act on it."""

from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Exists, Func, OuterRef, Q, Value
from django.utils.translation import gettext as _

from runs.catalog import spec
from runs.engine.limits import SECOND
from runs.engine.machines import RUN_STOPS
from runs.engine.state import CallState
from runs.journal.lease import now
from runs.models import Approval, Call, Policy, Question, Run
from runs.queries import words
from runs.queries.believed import believed
from runs.queries.display import one_line, visible
from runs.queries.viewer import Viewer

PAGE = 50


@dataclass
class Item:
    """One row. `kind` is approval, question, unknown or stop; `target` the key of its page."""

    kind: str
    target: Any
    run: Run
    text: str
    at: int
    tool: str = ""
    risk: str = ""
    why_not: str = ""
    state: str = ""
    seconds: int | None = None


@dataclass
class Inbox:
    """The groups of the inbox, the number of all that waits, and the id to go on from."""

    approvals: list[Item]
    questions: list[Item]
    unknown: list[Item]
    stops: list[Item]
    total: int
    older: int | None


def count() -> int:
    """How much waits for a person, for the number beside the word."""
    return (
        Approval.objects.filter(status="pending").count()
        + Question.objects.filter(status="open").count()
        + Call.objects.filter(status="unknown").count()
        + _stopped().count()
    )


class Names(Func):
    """Whether a JSON list of numbers holds a number: `Names("exclude", Value(7))`; SQLite has no `contains` for it."""

    arity = 2
    output_field = BooleanField()

    def as_sqlite(self, compiler: Any, connection: Any, **options: Any) -> Any:
        """By unrolling the list."""
        template = "EXISTS (SELECT 1 FROM json_each(%(expressions)s))"
        return self.as_sql(compiler, connection, template=template, arg_joiner=") WHERE value = (", **options)

    def as_postgresql(self, compiler: Any, connection: Any, **options: Any) -> Any:
        """By containment."""
        return self.as_sql(
            compiler, connection, template="(%(expressions)s)::int))", arg_joiner=" @> to_jsonb((", **options
        )


def count_mine(viewer: Viewer) -> int:
    """How much waits that this viewer can decide, answer, attest or set going again."""
    if not (viewer.decides or viewer.steers):
        return 0
    open_to = Approval.objects.filter(~Q(Names("exclude", Value(viewer.person.pk))), status="pending")
    return (
        open_to.count() + Question.objects.filter(status="open").count() + _unknown_calls().count() + _stopped().count()
    )


def _unknown_calls() -> Any:
    return Call.objects.filter(status="unknown")


def _stopped() -> Any:
    """Runs in a resumable stop; one with an unknown effect stands in the inbox by that effect already."""
    unknown = Call.objects.filter(run=OuterRef("pk"), status="unknown")
    return Run.objects.filter(~Exists(unknown), status__in=RUN_STOPS)


def inbox(viewer: Viewer, after: int = 0) -> Inbox:
    """Oldest first; approvals in keyset pages of `PAGE`, the rest on the first page."""
    pending = _with_run(Approval.objects.filter(status="pending", pk__gt=after)).order_by("pk")
    found = list(pending[: PAGE + 1])
    approvals = _approvals(found[:PAGE], viewer)
    older = found[PAGE - 1].pk if len(found) > PAGE else None
    if after:
        return Inbox(approvals, [], [], [], count(), older)
    return Inbox(approvals, _questions(viewer), _unknown(viewer), _stops(viewer), count(), older)


def _with_run(rows: Any) -> Any:
    return rows.select_related("run__agent_version__agent", "run__starter")


def why_not(viewer: Viewer, excluded: list[int] | None = None) -> str:
    """Why a viewer cannot decide; empty if they can."""
    if not viewer.decides:
        return _("Operators decide; you are {roles}.").format(roles=viewer.roles)
    if excluded and viewer.person.pk in excluded:
        return _("You started this run, so another operator decides.")
    return ""


def _approvals(found: list[Approval], viewer: Viewer) -> list[Item]:
    places = Q(pk__in=[])
    for approval in found:
        places |= Q(run=approval.run_id, turn=approval.turn, ordinal=approval.ordinal)
    calls = {(c.run_id, c.turn, c.ordinal): c for c in Call.objects.filter(places)} if found else {}
    policy = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    clock, items = now(), []
    for approval in found:
        call = calls[approval.run_id, approval.turn, approval.ordinal]
        items.append(
            Item(
                "approval", approval.pk, approval.run, words.headline(call.tool, call.values()), approval.created_at,
                call.tool, words.risk_of(policy, call.tool, spec(call.tool)), why_not(viewer, approval.exclude),
                seconds=max(0, approval.expires_at - clock) // SECOND if approval.expires_at else None,
            )
        )  # fmt: skip
    return items


def _questions(viewer: Viewer) -> list[Item]:
    rows = _with_run(Question.objects.filter(status="open")).order_by("pk")[:PAGE]
    return [Item("question", q.pk, q.run, one_line(q.text), q.created_at, why_not=why_not(viewer)) for q in rows]


def _unknown(viewer: Viewer) -> list[Item]:
    rows = _with_run(Call.objects.filter(status="unknown")).order_by("run_id")[:PAGE]
    return [
        Item(
            "unknown", (call.run_id, f"{call.turn}.{call.ordinal}"), call.run, words.headline(call.tool, call.values()),
            call.started_at or 0, call.tool, state=probing(call.run, call), why_not=why_not(viewer),
        )
        for call in rows
    ]  # fmt: skip


def probing(run: Run, call: Call) -> str:
    """What the host still does to find out; empty when only a person can tell."""
    state = believed(run)
    known: CallState | None = state.calls.get(call.ordinal) if state else None
    if state is None or known is None or known.status != "unknown":
        return ""
    if known.probing:
        return _("The host is asking the remote just now.")
    if known.probe(now(), state.cancel):
        return _("The host will ask the remote again by itself.")
    return ""


def _stops(viewer: Viewer) -> list[Item]:
    rows = _stopped().select_related("agent_version__agent", "starter").order_by("pk")
    items = []
    for run in rows[:PAGE]:
        state = believed(run)
        if state and (stop := state.stop):
            may = viewer.signs_off if stop.reason == "integrity" else viewer.steers
            lacks = _("An admin signs off.") if stop.reason == "integrity" else _("Operators act on runs.")
            text = f"{words.RUN[run.status].word}: {words.advice(stop.reason)}"
            items.append(
                Item("stop", run.pk, run, text, state.t, state=visible(run.goal), why_not="" if may else lacks)
            )
    return items
