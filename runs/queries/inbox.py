"""What waits for a person, of all kinds in one order, and why this viewer can or cannot act on it.

Urgency is the order: what expires first stands first, then what has no deadline, oldest first. Each kind is read by its
own index, a page at most, and the pages are laid together by key. That is one ordered union in a constant number of
queries, which no row leaves and none enters twice.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value

from runs.engine.limits import SECOND
from runs.engine.machines import RUN_STOPS
from runs.journal.lease import now
from runs.models import Approval, Call, Question, Run
from runs.queries import lookups
from runs.queries.items import Item, describe
from runs.queries.viewer import Viewer

PAGE = 50
SOON, RECENT = 15 * 60 * SECOND, 7 * 86_400 * SECOND
INTEGRITY = '"reason":"integrity"'  # as a stop of that reason stands in the state: an admin signs it off
DECIDED = ("approved", "consumed", "rejected")
KINDS: dict[str, tuple[str, ...]] = {  # view -> the kinds that it may hold
    "mine": ("approval", "unknown", "question", "stop"),
    "soon": ("approval",),
    "high": ("approval", "unknown"),
    "others": ("approval", "unknown", "question", "stop"),
    "all": ("approval", "unknown", "question", "stop"),
    "questions": ("question",),
    "unknown": ("unknown",),
    "stops": ("stop",),
    "decided": (),
}
Key = tuple[int, ...]  # (0 with a deadline, 1 without; when; rank of the kind; id of the row, in parts)


@dataclass(frozen=True)
class Wanted:
    """A view and the filters on it, as the address has them."""

    view: str
    tool: str = ""
    agent: str = ""
    risk: str = ""
    text: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str], viewer: Viewer) -> "Wanted":
        """From an address; what it does not say is what this viewer comes for."""
        view = given.get("view", "")
        risk = given.get("risk", "")
        return cls(
            view if view in KINDS else home(viewer), given.get("tool", "")[:64], given.get("agent", "")[:64],
            risk if risk in ("low", "medium", "high") else "", given.get("q", "").strip()[:120],
        )  # fmt: skip

    @property
    def filters(self) -> str:
        """The filters alone, as a query string; empty without any."""
        named = {"tool": self.tool, "agent": self.agent, "risk": self.risk, "q": self.text}
        return urlencode({name: value for name, value in named.items() if value})

    @property
    def query(self) -> str:
        """The whole as a query string."""
        return "&".join(part for part in (f"view={self.view}", self.filters) if part)


def home(viewer: Viewer) -> str:
    """The view that this viewer's inbox opens with."""
    return "mine" if viewer.decides else "all"


@dataclass(frozen=True)
class Source:
    """One kind of thing that waits: its rows, the column that says how urgent, and the columns of its id."""

    kind: str
    late: int
    rows: QuerySet[Any]
    at: str
    ids: tuple[str, ...] = ("pk",)

    @property
    def rank(self) -> int:
        """Its place among rows of the same moment."""
        return KINDS["all"].index(self.kind)

    def page(self, after: Key | None, limit: int) -> Iterator[tuple[Key, Any]]:
        """The next rows with their keys, in order."""
        if after is not None and after[0] > self.late:
            return
        rows = self.rows.filter(self._beyond(after)) if after is not None and after[0] == self.late else self.rows
        for row in rows.order_by(self.at, *self.ids)[:limit]:
            yield (self.late, getattr(row, self.at), self.rank, *(getattr(row, i) for i in self.ids)), row

    def _beyond(self, after: Key) -> Q:
        _late, at, rank, *ids = after
        if rank != self.rank or len(ids) != len(self.ids):
            return Q(**{f"{self.at}__gt" if rank > self.rank else f"{self.at}__gte": at})
        further, same = Q(**{f"{self.at}__gt": at}), Q(**{self.at: at})
        for name, value in zip(self.ids, ids, strict=True):
            further |= same & Q(**{f"{name}__gt": value})
            same &= Q(**{name: value})
        return Q(**{f"{self.at}__gte": at}) & further


def page(wanted: Wanted, viewer: Viewer, after: Key | None = None, limit: int = PAGE) -> tuple[list[Item], str]:
    """A page of a view and the cursor of what follows it, empty at the end."""
    if wanted.view == "decided":
        return _decided(wanted, viewer, after, limit)
    pages = [source.page(after, limit + 1) for source in _sources(wanted, viewer)]
    found = [pair for pair, _ in zip(merge(*pages, key=lambda pair: pair[0]), range(limit + 1), strict=False)]
    older = cursor_of(found[limit - 1][0]) if len(found) > limit else ""
    return describe(found[:limit], viewer), older


def read_cursor(text: str) -> Key | None:
    """The key of a cursor; None where it is none."""
    parts = text.split("-")
    if not 2 <= len(parts) <= 6 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
        return None
    return tuple(map(int, parts))


def cursor_of(key: Key) -> str:
    """A key as it stands in an address."""
    return "-".join(map(str, key))


def _sources(wanted: Wanted, viewer: Viewer) -> list[Source]:
    kinds, sources = KINDS[wanted.view], []
    if "approval" in kinds:
        waiting = _approvals(wanted, viewer)
        sources.append(Source("approval", 0, waiting.filter(expires_at__isnull=False), "expires_at"))
        if wanted.view != "soon":
            sources.append(Source("approval", 1, waiting.filter(expires_at__isnull=True), "created_at"))
    if "unknown" in kinds:
        ids = ("run_id", "turn", "ordinal")
        sources.append(Source("unknown", 1, _unknown(wanted, viewer), "started_at", ids))
    if "question" in kinds:
        sources.append(Source("question", 1, _questions(wanted, viewer), "created_at"))
    if "stop" in kinds:
        sources.append(Source("stop", 1, _stops(wanted, viewer), "started_at"))
    return sources


def _approvals(wanted: Wanted, viewer: Viewer) -> QuerySet[Approval]:
    rows = lookups.with_run(Approval.objects.filter(status="pending"))
    rows = lookups.narrowed(rows, wanted.agent, wanted.text, "call")
    if wanted.view == "soon":
        rows = rows.filter(expires_at__lt=now() + SOON)
    if tools := lookups.tools_of(wanted.tool, "high" if wanted.view == "high" else wanted.risk):
        rows = rows.filter(lookups.its_call(tools))
    return _by_right(rows, wanted, viewer.decides, Q(lookups.Names("exclude", Value(viewer.person.pk))))


def _by_right(rows: QuerySet[Any], wanted: Wanted, may: bool, lacks: Q | None = None) -> Any:
    """Rows that one may decide, or those that one may not; `lacks` is what keeps somebody out who may decide others."""
    if wanted.view == "mine":
        return rows.none() if not may else rows.exclude(lacks) if lacks is not None else rows
    if wanted.view == "others":
        return rows if not may else rows.filter(lacks) if lacks is not None else rows.none()
    return rows


def _unknown(wanted: Wanted, viewer: Viewer) -> QuerySet[Call]:
    rows = lookups.narrowed(lookups.with_run(Call.objects.filter(status="unknown")), wanted.agent, wanted.text, "call")
    if tools := lookups.tools_of(wanted.tool, "high" if wanted.view == "high" else wanted.risk):
        rows = rows.filter(tools)
    return _by_right(rows, wanted, viewer.decides)


def _questions(wanted: Wanted, viewer: Viewer) -> QuerySet[Question]:
    rows = lookups.narrowed(lookups.with_run(Question.objects.filter(status="open")), wanted.agent, wanted.text, "run")
    return _by_right(rows.none() if wanted.tool or wanted.risk else rows, wanted, viewer.decides)


def _stops(wanted: Wanted, viewer: Viewer) -> QuerySet[Run]:
    rows = lookups.narrowed(stopped().select_related("agent_version__agent", "starter"), wanted.agent, wanted.text)
    integrity = Q(state__contains=INTEGRITY)
    lacks = integrity if viewer.steers and not viewer.signs_off else None
    lacks = ~integrity if viewer.signs_off and not viewer.steers else lacks
    return _by_right(
        rows.none() if wanted.tool or wanted.risk else rows, wanted, viewer.steers or viewer.signs_off, lacks
    )


def stopped() -> QuerySet[Run]:
    """Runs in a resumable stop; one with an unknown effect stands in the inbox by that effect already."""
    unknown = Call.objects.filter(run=OuterRef("pk"), status="unknown")
    return Run.objects.filter(~Exists(unknown), status__in=RUN_STOPS)


def _recent() -> QuerySet[Approval]:
    return Approval.objects.filter(status__in=DECIDED, closed_at__gt=now() - RECENT)


def _decided(wanted: Wanted, viewer: Viewer, after: Key | None, limit: int) -> tuple[list[Item], str]:
    """What people decided in the last days, newest first."""
    rows = lookups.narrowed(lookups.with_run(_recent()), wanted.agent, wanted.text, "call")
    if tools := lookups.tools_of(wanted.tool, wanted.risk):
        rows = rows.filter(lookups.its_call(tools))
    if after is not None:
        rows = rows.filter(Q(closed_at__lt=after[0]) | Q(closed_at=after[0], pk__lt=after[-1]))
    found = [((row.closed_at or 0, row.pk), row) for row in rows.order_by("-closed_at", "-pk")[: limit + 1]]
    return describe(found[:limit], viewer), cursor_of(found[limit - 1][0]) if len(found) > limit else ""


def following(wanted: Wanted, viewer: Viewer, key: Key | None) -> Item | None:
    """The item after `key` in a view, else its first: where one goes on after a decision."""
    later = page(wanted, viewer, key, 1)[0] if key is not None else []
    found = later or page(wanted, viewer, None, 1)[0]
    return found[0] if found else None


CROWD, FRESH = 1000, 1.0  # from how many open items on counts are kept, and for how many seconds
_counted: dict[tuple[Any, ...], tuple[float, dict[str, int]]] = {}


def counts(viewer: Viewer) -> dict[str, int]:
    """How much each view holds. In a crowd a second old: then a count is work, and one more or less tells nobody."""
    who = (viewer.person.pk, viewer.groups)
    kept = _counted.get(who)
    if kept and time.monotonic() - kept[0] < FRESH:
        return kept[1]
    found = _count(viewer)
    if found["all"] > CROWD:
        if len(_counted) > CROWD:
            _counted.clear()
        _counted[who] = (time.monotonic(), found)
    return found


def _count(viewer: Viewer) -> dict[str, int]:
    high = lookups.tools_of("", "high")
    excluded = Q(lookups.Names("exclude", Value(viewer.person.pk)))
    asked = Approval.objects.filter(status="pending").aggregate(
        all=Count("pk"), lacks=Count("pk", filter=excluded), soon=Count("pk", filter=Q(expires_at__lt=now() + SOON)),
        high=Count("pk", filter=Q(lookups.its_call(high))),
    )  # fmt: skip
    unknown = Call.objects.filter(status="unknown").aggregate(all=Count("run_id"), high=Count("run_id", filter=high))
    questions = Question.objects.filter(status="open").count()
    stops = stopped().aggregate(all=Count("pk"), integrity=Count("pk", filter=Q(state__contains=INTEGRITY)))
    everything = asked["all"] + unknown["all"] + questions + stops["all"]
    mine = 0
    if viewer.decides:
        mine += asked["all"] - asked["lacks"] + unknown["all"] + questions
    mine += stops["all"] - stops["integrity"] if viewer.steers else 0
    mine += stops["integrity"] if viewer.signs_off else 0
    return {
        "mine": mine, "soon": asked["soon"], "high": asked["high"] + unknown["high"], "others": everything - mine,
        "all": everything, "questions": questions, "unknown": unknown["all"], "stops": stops["all"],
        "decided": _recent()[:CROWD].count(),
    }  # fmt: skip


def count_mine(viewer: Viewer) -> int:
    """How much waits that this viewer can decide, answer, attest or set going again."""
    return counts(viewer)["mine"] if viewer.decides or viewer.steers or viewer.signs_off else 0
