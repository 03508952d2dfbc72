"""A window of the timeline over time: what worked, and what waited for people. Where nothing worked, time is folded.

Places are percent of the drawing. It is made of the cards of the window alone, so it costs no query of its own; the
strip over a long run counts its calls in one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, F, Min

from runs.engine.limits import SECOND
from runs.models import Call, Run
from runs.queries.run_search import WRONG
from runs.queries.timeline import Card, Row

FOLDED = 0.06  # of all work: as wide a stretch without any is drawn at most
LEAST = 0.4  # percent: what is shorter could not be seen
STRIP = 60
ASKED, ANSWERED = ("ApprovalRequested", "QuestionAsked"), ("Decided", "ApprovalClosed", "QuestionAnswered")
BEGUN, ENDED = ("ModelAsked", "CallStarted"), ("ModelAnswered", "ModelFailed", "CallEnded", "CallSettled")
Stretch = tuple[int, int]  # microseconds since 1970


@dataclass(frozen=True)
class Bar:
    """A piece of a row: `kind` is work, wait or mark (something without a length)."""

    kind: str
    x: float
    width: float


@dataclass
class Span:
    """A row: the card that it shows, its bars, and how long it worked and waited for people, in milliseconds."""

    card: Card
    bars: list[Bar] = field(default_factory=list)
    worked: int = 0
    waited: int = 0


@dataclass(frozen=True)
class Tick:
    """A time on the axis, microseconds since 1970; a minor one gives way where there is little room."""

    x: float
    at: int
    minor: bool


@dataclass(frozen=True)
class Bucket:
    """Some of a long run's calls: how many, how many went wrong, the event to go to, and its place in the strip."""

    calls: int
    wrong: int
    seq: int
    x: float
    height: float
    red: float

    @property
    def top(self) -> float:
        """Where its bar begins, from above, of 40."""
        return round(40 - self.height, 1)

    @property
    def red_top(self) -> float:
        """Where the part that went wrong begins."""
        return round(40 - self.red, 1)


@dataclass
class Waterfall:
    """All rows with the axis; `folded` says whether some time is drawn shorter than it was."""

    spans: list[Span]
    ticks: list[Tick]
    folded: bool
    strip: list[Bucket]


class Axis:
    """Where a time stands: work at its scale, what lies between folded."""

    def __init__(self, work: Iterable[Stretch], begin: int, end: int) -> None:
        """`work` are all stretches in which a model or a tool worked, in any order."""
        busy = list(_merged(work))
        most = max(int(sum(b - a for a, b in busy) * FOLDED), SECOND // 20)
        self.times, self.places, self.folded = [begin], [0.0], False
        for a, b in [*busy, (end, end)]:
            for at, scale in ((a, most), (b, None)):
                length = max(0, at - self.times[-1])
                self.folded |= scale is not None and length > scale
                self.times.append(max(at, self.times[-1]))
                self.places.append(self.places[-1] + (min(length, scale) if scale is not None else length))

    def place(self, at: int) -> float:
        """Percent of the whole."""
        i = min(max(bisect_right(self.times, at) - 1, 0), len(self.times) - 1)
        place = self.places[i]
        if i + 1 < len(self.times) and self.times[i + 1] > self.times[i]:
            part = (at - self.times[i]) / (self.times[i + 1] - self.times[i])
            place += part * (self.places[i + 1] - self.places[i])
        return min(100.0, max(0.0, 100 * place / (self.places[-1] or 1)))


def waterfall(run: Run, cards: list[Card], clock: int) -> Waterfall:
    """The rows of a window's turns and calls; `clock` is now, in microseconds, for what still goes on."""
    until = clock if not run.ended else max((row.at for card in cards for row in card.rows), default=clock)
    drawn = [(card, *_stretches(card, until)) for card in cards if card.shape in ("turn", "call")]
    times = [row.at for card, _work, _wait in drawn for row in card.rows]
    if not times:
        return Waterfall([], [], False, _strip(run, len(cards)))
    open_wait = any(end == until for _card, work, wait in drawn for _a, end in [*work, *wait])
    axis = Axis([s for _card, work, _wait in drawn for s in work], min(times), until if open_wait else max(times))
    spans = [_span(axis, card, work, wait) for card, work, wait in drawn]
    return Waterfall(spans, _ticks(axis, drawn), axis.folded, _strip(run, len(cards)))


def _stretches(card: Card, until: int) -> tuple[list[Stretch], list[Stretch]]:
    """When a card worked and when it waited for people; what has not ended lasts until now."""
    return list(_between(card.rows, BEGUN, ENDED, until)), list(_between(card.rows, ASKED, ANSWERED, until))


def _between(rows: list[Row], begins: tuple[str, ...], ends: tuple[str, ...], until: int) -> Iterator[Stretch]:
    begun: int | None = None
    for row in rows:
        if row.kind in begins and begun is None:
            begun = row.at
        elif row.kind in ends and begun is not None:
            yield begun, max(begun, row.at)
            begun = None
    if begun is not None:
        yield begun, max(begun, until)


def _span(axis: Axis, card: Card, work: list[Stretch], wait: list[Stretch]) -> Span:
    bars = [_bar(axis, "wait", s) for s in wait] + [_bar(axis, "work", s) for s in work]
    if not bars:
        bars = [Bar("mark", round(min(axis.place(card.at), 100 - LEAST), 2), LEAST)]
    worked, waited = (sum(b - a for a, b in stretches) // 1000 for stretches in (work, wait))
    return Span(card, bars, worked, waited)


def _bar(axis: Axis, kind: str, stretch: Stretch) -> Bar:
    x, end = axis.place(stretch[0]), axis.place(stretch[1])
    x = min(x, 100 - LEAST)
    return Bar(kind, round(x, 2), round(max(end - x, LEAST), 2))


def _ticks(axis: Axis, drawn: list[tuple[Card, list[Stretch], list[Stretch]]]) -> list[Tick]:
    """A line where each turn begins, if it has room; a label for at most five of them."""
    ticks: list[Tick] = []
    for card, _work, _wait in drawn:
        x = round(axis.place(card.at), 2)
        if card.shape == "turn" and (not ticks or x - ticks[-1].x >= 9) and x <= 91:
            ticks.append(Tick(x, card.at, minor=bool(ticks) and x - ticks[-1].x < 18))
    return ticks


def _merged(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    begin = end = None
    for a, b in sorted(stretches):
        if begin is None or end is None or a > end:
            if begin is not None and end is not None:
                yield begin, end
            begin, end = a, b
        else:
            end = max(end, b)
    if begin is not None and end is not None:
        yield begin, end


def _strip(run: Run, shown: int) -> list[Bucket]:
    """All calls of a run that is longer than its window, by where in the record they ended; empty for others."""
    if run.seq <= 2 * STRIP or shown < STRIP:
        return []
    ended = Call.objects.filter(run=run, ended_seq__isnull=False)
    bucket = F("ended_seq") * STRIP / (run.seq + 1)
    rows = ended.annotate(bucket=bucket).order_by().values("bucket")
    found: list[Any] = list(
        rows.annotate(n=Count("ended_seq"), wrong=Count("ended_seq", filter=WRONG), seq=Min("ended_seq"))
    )
    most = max((row["n"] for row in found), default=1)
    wide = 100 / STRIP
    return [
        Bucket(
            row["n"], row["wrong"], row["seq"], round(row["bucket"] * wide, 2), round(36 * row["n"] / most, 1),
            round(36 * row["wrong"] / most, 1),
        )
        for row in sorted(found, key=lambda row: int(row["bucket"]))
    ]  # fmt: skip
