"""The head of one run: how it stands, why, and what a person can do now."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.engine.costs import Cost
from runs.engine.limits import SECOND, Limits
from runs.engine.machines import RUN_ENDS, RUN_STOPS
from runs.engine.state import RunState
from runs.journal.integrity import Tampered, check_head
from runs.journal.lease import now
from runs.models import Approval, Call, Event, Heartbeat, Incident, Question, Run
from runs.queries import costs, words
from runs.queries.display import visible
from runs.queries.viewer import Viewer


def cause(run: Run, state: RunState) -> Any:
    """Why the run stands as it does, in a sentence."""
    if state.stop and run.status in RUN_STOPS:
        return words.advice(state.stop.reason)
    if run.status == "queued" and not _somebody_works():
        return _("No worker is alive, so nobody takes it. Nothing is lost: it goes on when one starts.")
    return words.RUN_CAUSE.get(run.status, "")


def _somebody_works() -> bool:
    since = now() - int(settings.AGENTOPS_STALE * SECOND)
    return Heartbeat.objects.filter(kind="worker", at__gte=since).exists()


@dataclass
class Todo:
    """Something in the run that a person is asked: `kind` is approval, question or unknown."""

    kind: str
    text: str
    url_id: Any
    call: str
    expires: int | None = None


@dataclass
class Gauge:
    """A limit and how much of it is used; `time` where both are milliseconds."""

    name: str
    label: Any
    used: int
    most: int
    time: bool = False

    @property
    def near(self) -> int:
        """From where on it is close to its end."""
        return self.most * 8 // 10


@dataclass
class Head:
    """Everything above the timeline."""

    run: Run
    state: RunState
    sign: words.Sign
    cause: Any
    stop_detail: str
    todos: list[Todo]
    gauges: list[Gauge]
    checks: list[tuple[str, str, bool]]
    intact: str
    waited: int = 0
    cost: Cost | None = None
    answer: str = ""
    evidence: list[tuple[str, str]] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)

    @property
    def pending(self) -> str:
        """How much of what waits for people, in words."""
        n = {kind: sum(todo.kind == kind for todo in self.todos) for kind in ("approval", "question", "unknown")}
        said = (
            ngettext("{n} approval", "{n} approvals", n["approval"]).format(n=n["approval"]) if n["approval"] else "",
            ngettext("{n} question", "{n} questions", n["question"]).format(n=n["question"]) if n["question"] else "",
            ngettext("{n} unknown outcome", "{n} unknown outcomes", n["unknown"]).format(n=n["unknown"])
            if n["unknown"]
            else "",
        )
        return ", ".join(part for part in said if part)

    @property
    def model(self) -> str:
        """The model that is asked."""
        return costs.model_of(self.run)

    @property
    def scripted(self) -> bool:
        """Whether nothing is sent to anybody who could bill it."""
        return self.model.startswith("scripted:")

    @property
    def soonest(self) -> int | None:
        """When the first of what waits expires."""
        return min((todo.expires for todo in self.todos if todo.expires), default=None)

    @property
    def tip(self) -> str:
        """The hash that the record ends with, in hex."""
        return bytes(self.run.head).hex()

    @property
    def holding(self) -> int:
        """How many acceptance checks hold."""
        return sum(met for _name, _tool, met in self.checks)


def find_run(run_id: int) -> Run | None:
    """A run with all that its pages name."""
    return Run.objects.select_related("agent_version__agent", "starter").filter(pk=run_id).first()


def head(run: Run, viewer: Viewer) -> Head:
    """The head of a run page."""
    state = run.picture
    try:
        check_head(run)
        intact = ""
    except Tampered as error:
        intact = str(error)
    shown = Head(
        run, state, words.RUN[run.status], cause(run, state), _stop_detail(run, state), _todos(run), _gauges(state),
        _checks(run, state), intact, acts=acts(run, state, viewer),
        incidents=list(Incident.objects.filter(run=run).select_related("person").order_by("seq")),
        waited=_waited(run, state), cost=costs.of_runs([run.pk]).get(run.pk),
    )  # fmt: skip
    if run.status == "succeeded":
        shown.answer, shown.evidence = _answer(run)
    return shown


def _waited(run: Run, state: RunState) -> int:
    """Milliseconds since the start in which neither a model nor a tool worked; it ends with the run."""
    until = max(state.t, run.started_at) if run.ended else now()
    return max(0, (until - run.started_at) // 1000 - state.n.ms)


def _stop_detail(run: Run, state: RunState) -> str:
    if not state.stop:
        return ""
    body = Event.objects.filter(run=run, kind="RunStopped").order_by("-seq").values_list("body", flat=True).first()
    return visible(json.loads(body or "{}").get("detail", ""))


def _todos(run: Run) -> list[Todo]:
    if run.ended:
        return []
    approvals = {(a.turn, a.ordinal): a for a in Approval.objects.filter(run=run, status="pending")}
    todos = []
    waiting = Q(status="unknown") | Q(status="waiting")
    for call in Call.objects.filter(waiting, run=run).order_by("turn", "ordinal"):
        text, place = words.headline(call.tool, call.values()), f"{call.turn}.{call.ordinal}"
        if call.status == "unknown":
            todos.append(Todo("unknown", text, place, place))
        elif asked := approvals.get((call.turn, call.ordinal)):
            todos.append(Todo("approval", text, asked.pk, place, asked.expires_at))
    for question in Question.objects.filter(run=run, status="open"):
        todos.append(Todo("question", visible(question.text), question.pk, f"{question.turn}.{question.ordinal}"))
    return todos


def _gauges(state: RunState) -> list[Gauge]:
    limits: Limits = state.limits
    return [
        Gauge("turns", _("Turns"), state.n.turns, limits.turns),
        Gauge("calls", _("Calls"), state.n.calls, limits.calls),
        Gauge("ms", _("Working"), state.n.ms, limits.ms, time=True),
    ]


def holds(column: str, item: str) -> Q:
    """Rows whose JSON list, cast to text, holds a string: one database escapes what the other spells out."""
    return Q(**{f"{column}__contains": json.dumps(item)}) | Q(
        **{f"{column}__contains": json.dumps(item, ensure_ascii=False)}
    )


def _checks(run: Run, state: RunState) -> list[tuple[str, str, bool]]:
    return [
        (visible(str(check["id"]).replace("_", " ")), visible(str(check["tool"])), check["id"] in state.met)
        for check in state.checks
    ]


def _answer(run: Run) -> tuple[str, list[tuple[str, str]]]:
    """The accepted finish and, for each cited evidence, the card that it comes from."""
    call = Call.objects.filter(run=run, tool="finish", status="done").order_by("-turn").first()
    if call is None:
        return "", []
    values = call.values()
    cited = [str(item) for item in values.get("evidence", [])]
    text = Cast("evidence", TextField())
    rows = Call.objects.filter(run=run, outcome="ok").exclude(effect="host").annotate(text=text)
    wanted = Q(pk__in=[])
    for item in cited:
        wanted |= holds("text", item)
    anchors = {item: f"card-call-{item[5:].replace('.', '-')}" for item in cited if item.startswith("call:")}
    for row in rows.filter(wanted):
        anchors |= {item: f"card-call-{row.turn}-{row.ordinal}" for item in row.evidence if item in cited}
    return visible(str(values.get("answer", ""))), [(visible(item), anchors.get(item, "")) for item in cited]


def acts(run: Run, state: RunState, viewer: Viewer) -> list[str]:
    """What this viewer can do to the run as it stands, in the order of the page."""
    if run.status in RUN_ENDS:
        return ["note"] if viewer.notes else []
    found = ["note"] if viewer.notes else []
    integrity = bool(state.stop and state.stop.reason == "integrity")
    if integrity and viewer.signs_off:
        found.append("sign-off")
    if viewer.steers:
        found += _steering(state, integrity)
    return found


def _steering(state: RunState, integrity: bool) -> list[str]:
    found = []
    resumable = state.stop is not None and state.stop.reason not in ("turns", "calls", "time", "unknown_effect")
    if not integrity and (state.paused or resumable):
        found.append("resume")
    elif not state.paused and not state.cancel and not state.stop:
        found.append("pause")
    if not integrity and not state.cancel:
        found.append("extend")
    if not state.cancel:
        found.append("cancel")
    if state.stop and not state.having("unknown", "executing"):
        found.append("give-up")
    return found


@dataclass
class Raw:
    """Events as they stand, oldest first; `older` is the seq to ask for earlier ones, `newer` whether more follow."""

    rows: list[Event]
    older: int | None
    newer: bool


def raw(run: Run, before: int | None = None, limit: int = 100) -> Raw:
    """The last events of a run, or those before event `before`, without their payloads."""
    events = Event.objects.filter(run=run).select_related("person").defer("payload").order_by("-seq")
    rows = list((events.filter(seq__lt=before) if before is not None else events)[:limit])[::-1]
    older = rows[0].seq if rows and rows[0].seq > 1 else None
    return Raw(rows, older, bool(rows) and rows[-1].seq < run.seq)


def event_payload(run_id: int, seq: int) -> Event | None:
    """One event with its stored data."""
    return Event.objects.filter(run=run_id, seq=seq).select_related("person").first()


__all__ = ["Head", "acts", "event_payload", "find_run", "head", "raw"]
