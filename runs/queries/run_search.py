"""What is looked for in the timeline of one run. It stands in the address, so a view of a run can be passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Call, Event, Run
from runs.queries.words import CALL, OUTCOME
from runs.tools.host import HOST_TOOLS

if TYPE_CHECKING:
    from django.db.models import QuerySet

KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "turn": (gettext_lazy("Turns"), ("ModelAsked", "ModelAnswered", "ModelFailed", "FinishRefused")),
    "call": (gettext_lazy("Calls"), ("CallJudged",)),
    "decision": (gettext_lazy("Decisions"), ("ApprovalRequested", "Decided", "CallEdited", "ApprovalClosed")),
    "question": (gettext_lazy("Questions"), ("QuestionAsked", "QuestionAnswered")),
    "note": (gettext_lazy("Notes"), ("NoteAdded",)),
    "steering": (
        gettext_lazy("Stops and steering"),
        ("RunStarted", "RunStopped", "PauseAsked", "Resumed", "CancelAsked", "LimitsChanged", "SignedOff", "RunEnded"),
    ),
    "doubt": (
        gettext_lazy("Doubts and incidents"),
        ("CallProbed", "CallSettled", "LateEvidence", "IncidentOpened", "IncidentClosed"),
    ),
}
# How a call stands, as people call it: its state, or what a finished one came to.
STATES: dict[str, tuple[Any, Q]] = {
    **{
        outcome: (OUTCOME[outcome].word, Q(status="done", outcome__in=found))
        for outcome, found in {"ok": ["ok"], "declined": ["declined"], "fatal": ["fatal", "retryable"]}.items()
    },
    **{
        status: (sign.word, Q(status=status)) for status, sign in CALL.items() if status not in ("question", "proposed")
    },
}
ACTORS = {
    "model": gettext_lazy("The model"),
    "host": gettext_lazy("The host"),
    "tool": gettext_lazy("A tool"),
    "person": gettext_lazy("A person"),
}
WRONG = Q(status__in=("unknown", "denied", "invalid", "refused")) | Q(outcome__in=("fatal", "retryable", "declined"))
# Where "next" leads: what went wrong, or what people decided.
LANDMARKS = ("error", "decision")
LONGEST = 200


@dataclass(frozen=True)
class Search:
    """What was asked for; what makes no sense counts as not asked. `tool`, `actor` and `q` are taken as they are."""

    kind: str = ""
    tool: str = ""
    state: str = ""
    actor: str = ""
    q: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Search:
        """From the address; anything else in it is left alone."""
        wanted = {name: str(given.get(name, "")).strip()[:LONGEST].replace("\0", "") for name in NAMES}
        for name, known in (("kind", KINDS), ("state", STATES), ("actor", ACTORS)):
            wanted[name] = wanted[name] if wanted[name] in known else ""
        return cls(**wanted)

    @property
    def given(self) -> dict[str, str]:
        """What is on, by name."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    @property
    def address(self) -> str:
        """As a query string, ready to follow a question mark."""
        return urlencode(self.given)

    @property
    def chips(self) -> list[tuple[str, str]]:
        """What is on in words, and the address without it."""
        said = {
            "kind": str(KINDS[self.kind][0]) if self.kind else "",
            "tool": self.tool,
            "state": str(STATES[self.state][0]) if self.state else "",
            "actor": str(ACTORS[self.actor]) if self.actor else "",
            "q": _("Text: {what}").format(what=self.q),
        }
        return [(said[name], replace(self, **{name: ""}).address) for name in self.given]

    def narrow(self, run: Run) -> QuerySet[Event]:
        """The events of a run that match. A text is looked for in what is stored too, and not only in what is shown."""
        events = Event.objects.filter(run=run)
        if self.kind:
            events = events.filter(kind__in=KINDS[self.kind][1])
        if self.actor:
            events = events.filter(actor=self.actor)
        if self.tool or self.state:
            calls = Call.objects.filter(STATES[self.state][1] if self.state else Q())
            events = events.filter(_of(calls.filter(tool=self.tool) if self.tool else calls))
        if self.q:
            events = events.filter(_holding(self.q))
        return events


NAMES = tuple(field.name for field in fields(Search))


def _of(calls: QuerySet[Call]) -> Exists:
    return Exists(calls.filter(run=OuterRef("run"), turn=OuterRef("turn"), ordinal=OuterRef("ordinal")))


def _holding(text: str) -> Q:
    found = Q(person__username__icontains=text)
    for spelt in {text, text.encode("ascii", "backslashreplace").decode()}:  # JSON may have been stored with escapes
        found |= Q(body__icontains=spelt) | Q(payload__icontains=spelt)
    return found


def tools_of(run: Run) -> list[str]:
    """The tools that may stand in the timeline, by name."""
    return [*run.agent_version.definition["tools"], *HOST_TOOLS]


def next_after(run: Run, landmark: str, seq: int) -> int | None:
    """The first event after `seq` where something went wrong, or a person decided; None where none follows."""
    events = Event.objects.filter(run=run, seq__gt=seq).order_by("seq")
    if landmark == "decision":
        events = events.filter(kind__in=("Decided", "CallEdited", "QuestionAnswered"))
    else:
        judged = Q(kind="CallJudged") & Q(_of(Call.objects.filter(WRONG)))
        events = events.filter(judged | Q(kind__in=("RunStopped", "ModelFailed", "IncidentOpened")))
    return events.values_list("seq", flat=True).first()
