"""The list of runs: one page by keyset, with counts by state, and what is new or different since it was drawn."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from runs.engine.costs import Cost
from runs.engine.limits import SECOND
from runs.engine.state import RunState
from runs.journal.lease import now
from runs.models import Agent, Call, Run
from runs.queries import costs, words
from runs.queries.believed import believed
from runs.queries.display import one_line
from runs.queries.goals import parts
from runs.queries.run_cause import calls_in_hand, cause_of
from runs.queries.run_filter import GROUP_WORDS, GROUPS, Filter

PAGE = 50
CHINESE = re.compile(r"[\u4e00-\u9fff]")
READOUTS: dict[str, tuple[str, str]] = {  # tone and icon of each group
    "active": ("accent", "running"),
    "waiting": ("caution", "waiting"),
    "paused": ("quiet", "pause"),
    "stopped": ("unclear", "stop"),
    "succeeded": ("positive", "succeeded"),
    "failed": ("danger", "failed"),
    "cancelled": ("quiet", "rejected"),
}


@dataclass(frozen=True)
class RunRow:
    """A run in the list. Times are microseconds since 1970, `active` and `waited` milliseconds.

    `state` is None where the stored state cannot be read here: the row then says so and its figures are missing.
    `waited` is what passed from the start to the last event without a model or a tool at work.
    """

    run: Run
    sign: words.Sign
    goal: str
    cause: str
    state: RunState | None
    cost: Cost | None = None

    @property
    def chinese(self) -> bool:
        """Whether the goal is set in Chinese: it needs other line heights."""
        return CHINESE.search(self.goal) is not None

    @property
    def last(self) -> int:
        """When something was last recorded."""
        return max(self.state.t, self.run.started_at) if self.state else self.run.started_at

    @property
    def active(self) -> int:
        """How long models and tools worked."""
        return self.state.n.ms if self.state else 0

    @property
    def waited(self) -> int:
        """The rest."""
        return max(0, (self.last - self.run.started_at) // 1000 - self.active)

    def looks(self, clock: int) -> tuple[str, ...]:
        """Everything of the row that may look different the next time."""
        return self.run.status, self.run.state, self.cause, since(self.last, clock)


def since(us: int, clock: int) -> str:
    """How long before `clock` something was, in one unit."""
    seconds = (clock - us) // SECOND
    for size, text in ((86_400, _("{n} d")), (3600, _("{n} h")), (60, _("{n} min"))):
        if seconds >= size:
            return text.format(n=seconds // size)
    return _("{n} s").format(n=max(0, seconds))


@dataclass(frozen=True)
class Readout:
    """A group of states: its key, word, tone, icon, number, and the address of its list."""

    name: str
    word: Any
    tone: str
    icon: str
    count: int
    address: str


@dataclass(frozen=True)
class Counts:
    """How many runs match: by group whatever state is asked for, all of them, and those of the states asked for."""

    readouts: list[Readout]
    all: int
    total: int


@dataclass(frozen=True)
class RunList:
    """A page of runs, newest first. `older` is the id to go on from; `top` the newest id when it was drawn."""

    rows: list[RunRow]
    counts: Counts
    older: int | None
    top: int
    clock: int


def runs_of(wanted: Filter, clock: int) -> "QuerySet[Run]":
    """The runs of a filter with all that a row names, newest first."""
    found = Run.objects.select_related("agent_version__agent", "starter").order_by("-pk")
    return wanted.apply(found, clock).defer("inputs", "facts", "head", "agent_version__definition")


def run_list(wanted: Filter, before: int | None = None) -> RunList:
    """Keyset pages of `PAGE`: what arrives meanwhile moves nothing on the pages that follow."""
    clock = now()
    runs = runs_of(wanted, clock)
    found = list((runs.filter(pk__lt=before) if before is not None else runs)[: PAGE + 1])
    shown = rows_of(found[:PAGE])
    older = found[PAGE - 1].pk if len(found) > PAGE else None
    return RunList(shown, counts_of(wanted, clock), older, found[0].pk if found else 0, clock)


def rows_of(runs: Iterable[Run]) -> list[RunRow]:
    """Rows for runs that were read with all that they name: two queries more, for waiting calls and for costs."""
    read = [(run, believed(run)) for run in runs]
    calls, spent = calls_in_hand(read), costs.of_runs(run.pk for run, _state in read)
    return [_row(run, state, calls, spent.get(run.pk)) for run, state in read]


def _row(run: Run, state: RunState | None, calls: dict[Any, Call], cost: Cost | None) -> RunRow:
    goal = one_line(parts(run.goal).goal)
    return RunRow(run, words.RUN[run.status], goal, cause_of(run, state, calls), state, cost)


def counts_of(wanted: Filter, clock: int) -> Counts:
    """One query, whatever is asked for."""
    found = wanted.narrow(Run.objects.all(), clock).order_by().values_list("status").annotate(n=Count("pk"))
    by_status = dict(found)
    readouts = [
        Readout(
            name, GROUP_WORDS[name], *READOUTS[name], sum(by_status.get(status, 0) for status in group),
            wanted.but(status=name).address,
        )
        for name, group in GROUPS.items()
    ]  # fmt: skip
    return Counts(readouts, sum(by_status.values()), sum(by_status.get(status, 0) for status in wanted.statuses))


def newer(wanted: Filter, top: int, clock: int) -> int:
    """How many runs of the filter came after the newest one that is shown."""
    return wanted.apply(Run.objects.filter(pk__gt=top), clock).count()


def agents() -> list[tuple[str, str]]:
    """Slug and name of every agent, for the choice."""
    return list(Agent.objects.values_list("slug", "name"))


def starters(most: int = 200) -> list[str]:
    """Who has started a run."""
    begun = Run.objects.filter(starter=OuterRef("pk"))
    return list(User.objects.filter(Exists(begun)).order_by("username").values_list("username", flat=True)[:most])


def in_pieces(wanted: Filter, size: int = 500) -> Iterator[list[RunRow]]:
    """All rows of a filter, a few at a time: however many there are, only one piece is in memory."""
    clock, before = now(), None
    while True:
        runs = runs_of(wanted, clock)
        piece = list((runs.filter(pk__lt=before) if before is not None else runs)[:size])
        if piece:
            yield rows_of(piece)
        if len(piece) < size:
            return
        before = piece[-1].pk
