"""The two panes beside a decision: the views with their counts, and the list; and what stands where nothing is open."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, Subquery
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.catalog import catalog
from runs.models import Agent, Call, Decision, SavedView
from runs.queries import inbox, words
from runs.queries.inbox import Wanted
from runs.queries.items import Item
from runs.queries.viewer import Viewer

VIEWS: dict[str, Any] = {
    "mine": _("Mine to decide"),
    "soon": _("Under 15 minutes"),
    "high": _("High risk"),
    "others": _("Waiting on others"),
    "all": _("All open"),
    "questions": _("Questions"),
    "unknown": _("Unknown effects"),
    "stops": _("Stopped runs"),
    "decided": _("Recently decided"),
}


@dataclass
class View:
    """A view in the first pane."""

    name: str
    title: Any
    count: int
    current: bool


@dataclass
class Rest:
    """What stands in place of a decision: how much waits, and what one decided last, and when (microseconds)."""

    mine: int
    all: int
    last: int
    headline: str


@dataclass
class Listing:
    """Views, rows in their groups, and where to go on."""

    wanted: Wanted
    title: Any
    views: list[View]
    saved: list[tuple[SavedView, bool]]
    groups: list[tuple[Any, list[Item]]]
    counts: dict[str, int]
    older: str
    start: str
    agents: list[tuple[str, str]]
    tools: list[str]

    @property
    def items(self) -> list[Item]:
        """All rows."""
        return [item for _group, rows in self.groups for item in rows]

    @property
    def socket(self) -> str:
        """The address of the line that keeps this list true; it names the rows that are shown."""
        shown = {"from": self.start, "rows": " ".join(item.id for item in self.items)}
        return f"/ws/inbox/?{self.wanted.query}&{urlencode({k: v for k, v in shown.items() if v})}"

    @property
    def here(self) -> str:
        """The address of the list."""
        start = f"&from={self.start}" if self.start else ""
        return f"{reverse('inbox')}?{self.wanted.query}{start}"


def listing(wanted: Wanted, viewer: Viewer, start: str = "") -> Listing:
    """A page of a view with all that stands around it: a constant number of queries."""
    items, older = inbox.page(wanted, viewer, inbox.read_cursor(start))
    counts = inbox.counts(viewer)
    saved = [(view, view.query == wanted.query) for view in SavedView.objects.filter(person=viewer.person.pk)]
    mark = not any(current for _view, current in saved)
    views = [View(n, title, counts[n], mark and n == wanted.view) for n, title in VIEWS.items()]
    title = next((view.name for view, current in saved if current), VIEWS[wanted.view])
    agents = list(Agent.objects.values_list("slug", "name"))
    return Listing(
        wanted, title, views, sorted(saved, key=lambda pair: pair[0].name), grouped(items), counts, older, start,
        agents, sorted(catalog().tools),
    )  # fmt: skip


def grouped(items: list[Item]) -> list[tuple[Any, list[Item]]]:
    """Rows under their headings, in order."""
    found: list[tuple[Any, list[Item]]] = []
    for item in items:
        if not found or found[-1][0] != item.group:
            found.append((item.group, []))
        found[-1][1].append(item)
    return found


def rest(viewer: Viewer, counts: dict[str, int]) -> Rest:
    """What stands in place of a decision: one query."""
    place: dict[str, Any] = {name: OuterRef(f"approval__{name}") for name in ("run_id", "turn", "ordinal")}
    call = Call.objects.filter(**place)
    mine = Decision.objects.filter(person=viewer.person.pk).order_by("-at", "-pk")
    told = {"tool": Subquery(call.values("tool")[:1]), "arguments": Subquery(call.values("arguments")[:1])}
    last: Any = mine.annotate(**told).values_list("at", *told).first()
    if last is None or last[1] is None:
        return Rest(counts["mine"], counts["all"], 0, "")
    return Rest(counts["mine"], counts["all"], last[0], words.headline(last[1], json.loads(last[2])))
