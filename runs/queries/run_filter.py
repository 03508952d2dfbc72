"""Which runs a list shows. The address holds all of it, so that every view is a link that one can pass on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.limits import SECOND
from runs.engine.machines import RUN, RUN_STOPS
from runs.models import Call, Run
from runs.queries.words import RUN as SIGNS

GROUPS: dict[str, tuple[str, ...]] = {
    "active": ("queued", "running", "cancelling"),
    "waiting": ("waiting_approval", "waiting_input"),
    "paused": ("paused",),
    "stopped": RUN_STOPS,
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}
GROUP_WORDS: dict[str, Any] = {
    "active": gettext_lazy("Running"),
    "waiting": gettext_lazy("Waiting"),
    "paused": gettext_lazy("Paused"),
    "stopped": gettext_lazy("Stopped"),
    "succeeded": gettext_lazy("Succeeded"),
    "failed": gettext_lazy("Failed"),
    "cancelled": gettext_lazy("Cancelled"),
}
PERSON = GROUPS["waiting"] + GROUPS["stopped"]
WITHIN: dict[str, tuple[timedelta, Any]] = {
    "1h": (timedelta(hours=1), gettext_lazy("Last hour")),
    "24h": (timedelta(hours=24), gettext_lazy("Last 24 hours")),
    "7d": (timedelta(days=7), gettext_lazy("Last 7 days")),
    "30d": (timedelta(days=30), gettext_lazy("Last 30 days")),
}
NUMBER = re.compile(r"^(?:R-)?(\d{1,18})$", re.IGNORECASE)
LONGEST = 200


@dataclass(frozen=True)
class Chip:
    """One filter that is on: what it says, and the address without it."""

    text: str
    without: str


@dataclass(frozen=True)
class Filter:
    """What was asked for, as it was typed; what makes no sense counts as not asked.

    `status` is a key of `GROUPS` or one state, `agent` a slug, `starter` a username, `within` a key of `WITHIN`,
    `since` and `until` are days, or hours, both included, in the viewer's zone; `person` keeps what waits for people.
    """

    status: str = ""
    agent: str = ""
    starter: str = ""
    q: str = ""
    within: str = ""
    since: str = ""
    until: str = ""
    person: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Filter":
        """From the address; anything else in it is left alone."""
        wanted = {name: str(given.get(name, "")).strip()[:LONGEST].replace("\0", "") for name in NAMES}
        if wanted["status"] not in GROUPS and wanted["status"] not in RUN:
            wanted["status"] = ""
        if wanted["within"] not in WITHIN:
            wanted["within"] = ""
        for name in ("since", "until"):
            wanted[name] = wanted[name] if _span(wanted[name]) else ""
        wanted["person"] = "1" if wanted["person"] else ""
        return cls(**wanted)

    @property
    def given(self) -> dict[str, str]:
        """The filters that are on, by name."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    @property
    def address(self) -> str:
        """The filter as a query string, ready to follow a question mark."""
        return urlencode(self.given)

    def but(self, **changes: str) -> "Filter":
        """The same with other values."""
        return replace(self, **changes)

    @property
    def statuses(self) -> tuple[str, ...]:
        """The states that are asked for; all where none is named."""
        return GROUPS.get(self.status, (self.status,) if self.status else RUN)

    @property
    def chips(self) -> list[Chip]:
        """What is on, but for the state, which the readouts show."""
        said = {
            "status": "" if self.status in GROUPS else str(SIGNS[self.status].word) if self.status else "",
            "agent": _("Agent: {what}").format(what=self.agent),
            "starter": _("Started by {what}").format(what=self.starter),
            "q": _("Text: {what}").format(what=self.q),
            "within": str(WITHIN[self.within][1]) if self.within else "",
            "since": _("From {what}").format(what=self.since),
            "until": _("Until {what}").format(what=self.until),
            "person": _("Needs a person"),
        }
        return [Chip(said[name], self.but(**{name: ""}).address) for name in self.given if said[name]]

    def narrow(self, runs: "QuerySet[Run]", clock: int) -> "QuerySet[Run]":
        """`runs` by everything but the state; `clock` is now in microseconds."""
        if self.agent:
            runs = runs.filter(agent_version__agent__slug=self.agent)
        if self.starter:
            runs = runs.filter(starter__username=self.starter)
        if self.within:
            runs = runs.filter(started_at__gte=clock - int(WITHIN[self.within][0].total_seconds()) * SECOND)
        if since := _span(self.since):
            runs = runs.filter(started_at__gte=since[0])
        if until := _span(self.until):
            runs = runs.filter(started_at__lt=until[1])
        if self.person:
            unknown = Call.objects.filter(run=OuterRef("pk"), status="unknown")
            runs = runs.filter(Q(status__in=PERSON) | Exists(unknown))
        return self._with_text(runs) if self.q else runs

    def _with_text(self, runs: "QuerySet[Run]") -> "QuerySet[Run]":
        """Goal, inputs and starter; `R-12` and a bare number also name a run."""
        runs = runs.annotate(inputs_text=Cast("inputs", TextField()))
        text = Q(goal__icontains=self.q) | Q(starter__username__icontains=self.q)
        for spelt in {self.q, self.q.encode("ascii", "backslashreplace").decode()}:  # one database stores escapes
            text |= Q(inputs_text__icontains=spelt)
        if found := NUMBER.match(self.q):
            text |= Q(pk=int(found[1]))
        return runs.filter(text)

    def apply(self, runs: "QuerySet[Run]", clock: int) -> "QuerySet[Run]":
        """`runs` by the whole filter."""
        runs = self.narrow(runs, clock)
        return runs.filter(status__in=self.statuses) if self.status else runs


NAMES = tuple(field.name for field in fields(Filter))


def group_of(status: str) -> str:
    """The key of `GROUPS` that a state belongs to."""
    return next(name for name, group in GROUPS.items() if status in group)


def _span(text: str) -> tuple[int, int] | None:
    """Begin and end of a day, or of an hour such as 2026-12-01T06, in the viewer's zone, as microseconds since 1970."""
    form, length = ("%Y-%m-%dT%H", timedelta(hours=1)) if "T" in text else ("%Y-%m-%d", timedelta(days=1))
    try:
        begin = datetime.strptime(text, form)
    except ValueError:
        return None
    return (_micros(begin), _micros(begin + length)) if 1970 < begin.year < 9999 else None


def _micros(at: datetime) -> int:
    """Microseconds since 1970 at a time of the viewer's zone."""
    return int(at.replace(tzinfo=timezone.get_current_timezone()).timestamp()) * SECOND
