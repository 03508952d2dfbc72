"""How it goes: what needs the viewer, what runs, how runs came out, how long people took, where runs stopped.

Counted over runs and decisions by their indexes, never over events: the cost is bounded by the runs of the range.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import BigIntegerField, Case, CharField, Count, F, Func, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy, pgettext

from runs.engine.costs import Cost, total
from runs.engine.limits import SECOND
from runs.engine.machines import RUN_ENDS, RUN_OPEN, RUN_STOPS
from runs.journal.lease import now
from runs.models import Approval, Call, Decision, Policy, Run
from runs.queries import charts, costs, inbox, words
from runs.queries.lookups import Names
from runs.queries.policies import risk_of
from runs.queries.viewer import Viewer

HOUR, FIRST = 3600 * SECOND, 4
RANGES: dict[str, tuple[Any, int, int]] = {  # word, buckets, width of one in microseconds
    "24h": (gettext_lazy("24 hours"), 24, HOUR),
    "7d": (gettext_lazy("7 days"), 7, 24 * HOUR),
    "30d": (gettext_lazy("30 days"), 30, 24 * HOUR),
}
GOING = "going"
SERIES = (
    charts.Series("succeeded", gettext_lazy("succeeded"), "accent", "solid"),
    charts.Series("stopped", gettext_lazy("need a person"), "unclear", "hollow"),
    charts.Series("failed", gettext_lazy("failed"), "danger", "hatched"),
    charts.Series("cancelled", gettext_lazy("cancelled"), "quiet", "faint"),
    charts.Series(GOING, gettext_lazy("under way"), "accent", "dashed"),
)
GROUP = {status: status for status in RUN_ENDS} | dict.fromkeys(RUN_STOPS, "stopped") | dict.fromkeys(RUN_OPEN, GOING)
REASONS: dict[str, Any] = {
    "turns": gettext_lazy("limit of turns"), "calls": gettext_lazy("limit of calls"),
    "time": gettext_lazy("limit of time"), "budget": gettext_lazy("budget used up"),
    "repeats": gettext_lazy("repeats itself"),
    "failures": gettext_lazy("failures in a row"), "claims": gettext_lazy("finish not accepted"),
    "refusals": gettext_lazy("refused by people"), "refused": gettext_lazy("provider refused"),
    "auth": gettext_lazy("provider's key"), "model": gettext_lazy("no usable answer"),
    "billing": gettext_lazy("provider's account"),
    "request": gettext_lazy("request not taken"), "context": gettext_lazy("conversation too long"),
    "crashes": gettext_lazy("workers died"), "unknown_effect": gettext_lazy("unknown effect"),
    "give_up": gettext_lazy("agent gave up"), "integrity": gettext_lazy("record does not match"),
    "restored": gettext_lazy("database restored"), "unreadable": gettext_lazy("other code needed"),
    "error": gettext_lazy("bug of the host"),
}  # fmt: skip


@dataclass(frozen=True)
class Range:
    """A time range in buckets; days are those of the viewer's zone. Times are microseconds."""

    name: str
    since: int
    buckets: int
    width: int

    @classmethod
    def of(cls, name: str, clock: int) -> "Range":
        """The range of this name that ends with the hour, or the day, of `clock`; a week for an unknown name."""
        name = name if name in RANGES else "7d"
        _word, buckets, width = RANGES[name]
        at = datetime.fromtimestamp(clock / SECOND, UTC).astimezone(timezone.get_current_timezone())
        begin = at.replace(minute=0, second=0, microsecond=0)
        begin = begin if width == HOUR else begin.replace(hour=0)
        return cls(name, int(begin.timestamp()) * SECOND - (buckets - 1) * width, buckets, width)

    @property
    def word(self) -> Any:
        """7 days"""
        return RANGES[self.name][0]

    @property
    def span(self) -> int:
        """Its length."""
        return self.buckets * self.width

    @property
    def hours(self) -> bool:
        """Whether its buckets are hours."""
        return self.width == HOUR

    def moment(self, bucket: int) -> datetime:
        """When a bucket begins; the middle of a day is taken, as some days have 23 or 25 hours."""
        shift = 0 if self.hours else 12 * HOUR
        at = (self.since + bucket * self.width + shift) / SECOND
        return datetime.fromtimestamp(at, UTC).astimezone(timezone.get_current_timezone())

    def label(self, bucket: int) -> str:
        """As short as it stays clear, for the axis."""
        return date_format(self.moment(bucket), "H" if self.hours else "j")

    def words(self, bucket: int) -> str:
        """In full, for tables."""
        # Translators: weekday, day and month; or hour and minute. Letters as in Django's date filter.
        return date_format(self.moment(bucket), "H:i" if self.hours else pgettext("time format", "D j M"))

    @property
    def every(self) -> int:
        """Which labels are drawn."""
        return {24: 4, 7: 1}.get(self.buckets, 5)

    def link(self, bucket: int, status: str = "") -> str:
        """The list of the runs of a bucket."""
        day = self.moment(bucket).strftime("%Y-%m-%dT%H" if self.hours else "%Y-%m-%d")
        return f"/runs?{f'status={status}&' if status else ''}since={day}&until={day}"


def bucket_of(column: str, since: int, width: int) -> Any:
    """The number of the bucket that a time of microseconds falls into. A plain `Value` is bound as 32 bits, unsaid."""
    begin, each = (Value(number, output_field=BigIntegerField()) for number in (since, width))
    return (F(column) - begin) / each


class InState(Func):
    """A piece of the stored state of runs, found by its text: a state that is damaged gives nothing, and no error."""

    def __init__(self, before: str, shape: str, path: str, output_field: Any) -> None:
        """`before` is the text that precedes it, `shape` its regular expression, `path` the same place as JSON."""
        self.before, self.shape, self.path = before, shape, path
        super().__init__(F("state"), output_field=output_field)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """By its text: the expression has only what follows to look at, which is many times faster."""
        rest = f"split_part(%(expressions)s, '{self.before}', 2)"
        return super().as_sql(compiler, connection, template=f"substring({rest} from '^{self.shape}')", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """By its path, where it is JSON at all."""
        sql, params = compiler.compile(self.source_expressions[0])
        template = f"CASE WHEN json_valid({sql}) THEN json_extract({sql}, '{self.path}') END"
        return template, [*params, *params]


@dataclass
class Latency:
    """How long decisions took, in milliseconds: half were faster than `p50`, and all but 5 of 100 faster than `p95`."""

    n: int = 0
    p50: int | None = None
    p95: int | None = None


@dataclass
class Spent:
    """Tokens of an agent's runs; `untold` counts runs that asked a model which told no figure."""

    name: str
    slug: str
    runs: int
    tokens: int
    untold: int
    cost: Cost | None = None


@dataclass
class Decided:
    """What people said, by number."""

    approved: int = 0
    edited: int = 0
    rejected: int = 0

    @property
    def all(self) -> int:
        """All decisions."""
        return self.approved + self.edited + self.rejected

    def share(self, n: int) -> int | None:
        """Of a hundred; None where nothing was decided."""
        return round(100 * n / self.all) if self.all else None

    @property
    def as_proposed(self) -> int | None:
        """Of a hundred decisions, how many were yes to what the agent proposed."""
        return self.share(self.approved)


@dataclass
class Overview:
    """Everything of the page but what waits for the viewer."""

    range: Range
    counts: list[dict[str, int]]
    totals: dict[str, int]
    before: int
    decided: Decided
    latency: Latency
    by_bucket: dict[int, Latency]
    stops: list[tuple[str, int]]
    unknown: int
    spent: list[Spent] = field(default_factory=list)
    days: list[tuple[str, Cost]] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """How many were started."""
        return sum(self.totals.values())

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return sum(self.totals.get(status, 0) for status in RUN_ENDS)

    @property
    def rate(self) -> int | None:
        """Of a hundred that ended, how many succeeded."""
        return round(100 * self.totals.get("succeeded", 0) / self.ended) if self.ended else None

    @property
    def tokens(self) -> int:
        """Of all runs of the range whose models told it."""
        return sum(one.tokens for one in self.spent)

    @property
    def cost(self) -> Cost | None:
        """Of all runs of the range; None where none asked a model that anybody bills."""
        told = [one.cost for one in self.spent if one.cost]
        return total(told) if told else None

    @property
    def untold(self) -> int:
        """Runs whose models told nothing."""
        return sum(one.untold for one in self.spent)


def overview(name: str) -> Overview:
    """A constant number of queries, whatever the range holds."""
    clock = now()
    wanted = Range.of(name, clock)
    counts, before = _outcomes(wanted)
    latency, by_bucket = _latencies(wanted)
    totals: dict[str, int] = defaultdict(int)
    for bucket in counts:
        for group, n in bucket.items():
            totals[group] += n
    return Overview(
        wanted, counts, dict(totals), before, _decided(wanted), latency, by_bucket, _stops(),
        Call.objects.filter(status="unknown").count(), _spent(wanted),
        costs.by_day(wanted.since, wanted.since + wanted.span),
    )  # fmt: skip


def _outcomes(wanted: Range) -> tuple[list[dict[str, int]], int]:
    """How the runs of each bucket stand now, by group; and how many were started in the range before."""
    begin = wanted.since - wanted.span
    runs = Run.objects.filter(started_at__gte=begin, started_at__lt=wanted.since + wanted.span).order_by()
    rows = runs.annotate(bucket=bucket_of("started_at", begin, wanted.width)).values_list("bucket", "status")
    found: list[dict[str, int]] = [defaultdict(int) for _n in range(wanted.buckets)]
    before = 0
    for bucket, status, n in rows.annotate(n=Count("pk")):
        if bucket < wanted.buckets:
            before += n
        else:
            found[bucket - wanted.buckets][GROUP[status]] += n
    return found, before


def _made(wanted: Range) -> "QuerySet[Decision]":
    return Decision.objects.filter(at__gte=wanted.since, at__lt=wanted.since + wanted.span).order_by()


def _decided(wanted: Range) -> Decided:
    found = Decided()
    edited = Case(When(approval__revision__gt=1, then=Value(1)), default=Value(0))
    for vote, changed, n in _made(wanted).annotate(edited=edited).values_list("vote", "edited").annotate(n=Count("pk")):
        if vote == "reject":
            found.rejected += n
        elif changed:
            found.edited += n
        else:
            found.approved += n
    return found


def _latencies(wanted: Range) -> tuple[Latency, dict[int, Latency]]:
    """Of all decisions of the range, and of those of each bucket; to sort here is faster than a window there."""
    rows = _made(wanted).annotate(us=F("at") - F("approval__created_at"))
    took: dict[int, list[int]] = defaultdict(list)
    for at, us in rows.values_list("at", "us").iterator(chunk_size=20_000):
        took[(at - wanted.since) // wanted.width].append(us // 1000)
    every = [ms for bucket in took.values() for ms in bucket]
    return _ranked(every), {bucket: _ranked(all_of_it) for bucket, all_of_it in took.items()}


def _ranked(took: list[int]) -> Latency:
    """Median and 95th of a hundred, by the nearest rank."""
    if not took:
        return Latency()
    took.sort()
    return Latency(len(took), *(took[(len(took) * rank + 99) // 100 - 1] for rank in (50, 95)))


def _stops() -> list[tuple[str, int]]:
    """Why the runs that stand still do so, the most frequent first."""
    reason = InState('"stop":{"re":"', "[a-z_]+", "$.stop.re", CharField())
    rows = Run.objects.filter(status__in=RUN_STOPS).order_by().annotate(reason=reason).values_list("reason")
    found = rows.annotate(n=Count("pk"))
    return sorted(((reason or "", n) for reason, n in found), key=lambda one: (-one[1], one[0]))


def _spent(wanted: Range) -> list[Spent]:
    """By agent, what its runs of the range told of tokens."""
    told = Cast(InState('"tok":', "[0-9]+", "$.n.tok", BigIntegerField()), BigIntegerField())
    runs = Run.objects.filter(started_at__gte=wanted.since, started_at__lt=wanted.since + wanted.span).order_by()
    asked = Q(told=None, state__contains='"turn":')
    rows = runs.annotate(told=told).values_list("agent_version__agent__name", "agent_version__agent__slug")
    found = rows.annotate(n=Count("pk"), tokens=Sum("told"), untold=Count("pk", filter=asked))
    cost = costs.by_agent(wanted.since, wanted.since + wanted.span)
    spent = [Spent(name, slug, n, tokens or 0, untold, cost.get(slug)) for name, slug, n, tokens, untold in found]
    return sorted(spent, key=lambda one: (-one.tokens, one.name))


@dataclass
class First:
    """One approval that the viewer may decide; `seconds` until it expires, None for never."""

    pk: int
    text: str
    tool: str
    risk: str
    risk_word: Any
    run: Run
    at: int
    seconds: int | None


@dataclass
class Needs:
    """What waits: for this viewer, for anybody, and what runs by itself. `first` are the most urgent approvals."""

    mine: int
    all: int
    first: list[First]
    unknown: int
    questions: int
    stopped: int
    running: int

    @property
    def seconds(self) -> int | None:
        """Until the first of them expires."""
        return min((one.seconds for one in self.first if one.seconds is not None), default=None)


def needs(viewer: Viewer) -> Needs:
    """What waits for people as the viewer sees it: a constant number of queries."""
    clock = now()
    rows = Approval.objects.filter(status="pending").select_related("run__agent_version__agent", "run__starter")
    if viewer.decides:
        rows = rows.filter(~Q(Names("exclude", Value(viewer.person.pk))))
    found = list(rows.order_by(F("expires_at").asc(nulls_last=True), "pk")[:FIRST])
    places = Q(pk__in=[])
    for one in found:
        places |= Q(run=one.run_id, turn=one.turn, ordinal=one.ordinal)
    calls = {call.pk: call for call in Call.objects.filter(places)}
    content = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    first = [_first(one, calls[one.run_id, one.turn, one.ordinal], content, clock) for one in found]
    by_status = dict(
        Run.objects.filter(status__in=(*RUN_STOPS, "queued", "running", "cancelling"))
        .order_by().values_list("status").annotate(n=Count("pk"))
    )  # fmt: skip
    counts = inbox.counts(viewer)
    return Needs(
        counts["mine"], counts["all"], first, counts["unknown"], counts["questions"],
        sum(by_status.get(status, 0) for status in RUN_STOPS),
        sum(n for status, n in by_status.items() if status not in RUN_STOPS),
    )  # fmt: skip


def _first(one: Approval, call: Call, content: Any, clock: int) -> First:
    risk = risk_of(content, call.tool)
    left = max(0, one.expires_at - clock) // SECOND if one.expires_at else None
    return First(
        one.pk,
        words.headline(call.tool, call.values()),
        call.tool,
        risk,
        words.RISK[risk],
        one.run,
        one.created_at,
        left,
    )
