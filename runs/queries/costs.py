"""What was spent, from the requests on record. Where nothing is on record there is no entry, and no 0 is made of it.

A sum is unknown as soon as one of its requests has no price, and "at least" while one is open or was cut.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q, Sum

from runs.engine.costs import Cost
from runs.engine.limits import SECOND
from runs.models import Run, Spend

if TYPE_CHECKING:
    from django.db.models import QuerySet

DAY = 86_400 * SECOND


def of_runs(runs: Iterable[int]) -> dict[Any, Cost]:
    """By run: one query."""
    return _sums(Spend.objects.filter(run__in=list(runs)), "run")


def of_turns(run: Run, turns: Iterable[int]) -> dict[Any, Cost]:
    """By turn of a run, all its requests together: one query."""
    return _sums(Spend.objects.filter(run=run, turn__in=list(turns)), "turn")


def of_agents(since: int) -> dict[Any, Cost]:
    """By id of the agent, requests since the day (UTC) of `since`, microseconds: one query."""
    return _sums(Spend.objects.filter(day__gte=since // DAY), "agent")


def by_agent(since: int, until: int) -> dict[Any, Cost]:
    """By slug of the agent, all requests of runs that were started in a time: one query."""
    rows = Spend.objects.filter(run__started_at__gte=since, run__started_at__lt=until)
    return _sums(rows, "run__agent_version__agent__slug")


def by_day(since: int, until: int) -> list[tuple[str, Cost]]:
    """By day (UTC, ISO) of the request, newest first, of the days that a time touches: one query."""
    found = _sums(Spend.objects.filter(day__gte=since // DAY, day__lte=until // DAY), "day")
    return [(day_of(day), cost) for day, cost in sorted(found.items(), reverse=True)]


def day_of(day: int) -> str:
    """The ISO date of a number of days since 1970."""
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def model_of(run: Run) -> str:
    """The model that a run asks: chosen at its start, else its agent version's."""
    return str(run.model or run.agent_version.definition["model"])


def _sums(rows: "QuerySet[Spend]", by: str) -> dict[Any, Cost]:
    unpriced, more = Q(settled=True, cost=None), Q(estimate=True)
    found = rows.order_by().values_list(by).annotate(
        known=Sum("cost"), lacks=Count("pk", filter=unpriced), open=Count("pk", filter=more)
    )  # fmt: skip
    return {key: Cost(None if lacks else known or 0, bool(more)) for key, known, lacks, more in found}
