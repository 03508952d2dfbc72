"""Acts on many runs: what would be done, what is under way, and what became of each."""

from dataclasses import dataclass, field
from typing import Any

from django.db.models import Case, Count, IntegerField, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.journal.lease import now
from runs.models import Bulk, BulkItem, Run
from runs.models.bulk import MOST
from runs.queries import words
from runs.queries.display import one_line
from runs.queries.goals import parts
from runs.queries.run_filter import Filter
from runs.queries.run_list import RunRow, rows_of, runs_of
from runs.queries.runs import acts
from runs.queries.viewer import Viewer

PAGE = 100


@dataclass
class Preview:
    """What an act on many runs would do: to `can`; not to `cannot`, each with its reason. `over` match besides."""

    kind: str
    can: list[RunRow] = field(default_factory=list)
    cannot: list[tuple[RunRow, str]] = field(default_factory=list)
    over: int = 0

    @property
    def chosen(self) -> str:
        """The runs that it would be done to, each with the state that was seen: 12:running,13:paused."""
        return ",".join(f"{row.run.pk}:{row.run.status}" for row in self.can)

    @property
    def flying(self) -> int:
        """How many of them have a call under way."""
        return sum(bool(row.state and row.state.having("executing")) for row in self.can)


def preview_of(kind: str, viewer: Viewer, ids: list[int]) -> Preview:
    """The runs that were ticked."""
    found = runs_of(Filter(), now()).filter(pk__in=ids[:MOST])
    return _sorted(Preview(kind), rows_of(found), viewer)


def preview_all(kind: str, viewer: Viewer, wanted: Filter) -> Preview:
    """The newest `MOST` runs of a filter that have not ended; those that have are not even asked."""
    found = list(runs_of(wanted, now()).exclude(status__in=("succeeded", "failed", "cancelled"))[: MOST + 1])
    over = 0
    if len(found) > MOST:
        over = wanted.apply(Run.objects.filter(pk__lt=found[MOST - 1].pk), now()).count()
    return _sorted(Preview(kind, over=over), rows_of(found[:MOST]), viewer)


def _sorted(preview: Preview, rows: list[RunRow], viewer: Viewer) -> Preview:
    for row in rows:
        if row.state is not None and preview.kind in acts(row.run, row.state, viewer):
            preview.can.append(row)
        else:
            preview.cannot.append((row, _why_not(preview.kind, row)))
    return preview


def _why_not(kind: str, row: RunRow) -> str:
    if row.run.ended:
        return _("It has already ended.")
    if row.state is None:
        return _("Other code recorded it.")
    if row.state.cancel:
        return _("It is being cancelled already.")
    return _("It is paused already.") if row.state.paused else _("It stands still already.")


def under_way(most: int = 3) -> list[Bulk]:
    """The oldest that are not at their end."""
    return list(Bulk.objects.filter(due_at__isnull=False).select_related("person").order_by("due_at")[:most])


RESULTS: dict[str, words.Sign] = {
    "": words.Sign(gettext_lazy("Waits"), "quiet", "clock"),
    "done": words.Sign(gettext_lazy("Done"), "positive", "check"),
    "skipped": words.Sign(gettext_lazy("Skipped"), "caution", "two"),
    "refused": words.Sign(gettext_lazy("Refused"), "danger", "denied"),
    "left": words.Sign(gettext_lazy("Left as it was"), "quiet", "rejected"),
}


@dataclass
class Line:
    """One run of it, with what became of it."""

    item: BulkItem
    sign: words.Sign
    goal: str
    said: str

    @property
    def stands(self) -> Any:
        """How the run stands now."""
        return words.RUN[self.item.run.status].word


@dataclass
class Sheet:
    """One act on many runs: how far it is, and a page of its runs, what did not go as asked first."""

    bulk: Bulk
    counts: list[tuple[str, words.Sign, int]]
    total: int
    ready: int
    lines: list[Line]
    older: int | None

    @property
    def ended(self) -> bool:
        """Nothing more will be done."""
        return self.bulk.ended_at is not None


def sheet(bulk_id: int, start: int = 0) -> Sheet | None:
    """A page of `PAGE` from `start` on: the order is by result, so it is cut by place; there are `MOST` at most."""
    bulk = Bulk.objects.select_related("person", "stopper").filter(pk=bulk_id).first()
    if bulk is None:
        return None
    by_result = dict(BulkItem.objects.filter(bulk=bulk).values_list("result").annotate(n=Count("pk")))
    order = Case(*(When(result=r, then=Value(n)) for n, r in enumerate(ORDER)), output_field=IntegerField())
    items = BulkItem.objects.filter(bulk=bulk).select_related("run").defer("run__state", "run__inputs", "run__facts")
    found = list(items.order_by(order, "-run_id")[start : start + PAGE + 1])
    counts = [(result, RESULTS[result], by_result.get(result, 0)) for result in ("done", "skipped", "refused", "left")]
    total = sum(by_result.values())
    older = start + PAGE if len(found) > PAGE else None
    return Sheet(bulk, counts, total, total - by_result.get("", 0), [_line(item) for item in found[:PAGE]], older)


ORDER = ("refused", "skipped", "left", "done", "")


def _line(item: BulkItem) -> Line:
    return Line(item, RESULTS[item.result], one_line(parts(item.run.goal).goal), _said(item))


def _said(item: BulkItem) -> str:
    if item.result == "skipped":
        was, is_now = words.RUN[item.seen].word, words.RUN[item.said].word
        return _("It was “{was}” when it was chosen, and “{now}” when its turn came.").format(was=was, now=is_now)
    if item.result == "done" and item.said:
        return _("It stood so already.")
    return item.said


def chosen_of(text: str) -> dict[int, str]:
    """The inverse of `Preview.chosen`. Raises `ValueError`."""
    found: dict[int, Any] = {}
    for part in text.split(",") if text else ():
        number, _colon, status = part.partition(":")
        if not number.isascii() or not number.isdigit() or len(number) > 18 or status not in words.RUN:
            raise ValueError(part)
        found[int(number)] = status
    return found
