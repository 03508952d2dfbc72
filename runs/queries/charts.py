"""Where the marks of a chart stand. Server-side SVG: lengths are attributes, never styles; each mark has words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

WIDTH, LEFT, TOP, BOTTOM = 400, 34, 22, 150  # of a chart with bars or lines, in the units of its viewBox
HEIGHT = BOTTOM - TOP
APART, NAMES = 12, 62  # between two names at the ends of lines, and the room for them


@dataclass(frozen=True)
class Line:
    """A line of the grid: where, and its figure."""

    y: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A part of a stacked bar. `fill` is solid, hollow, hatched or faint: shapes, so that colour is not needed."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    fill: str


@dataclass(frozen=True)
class Column:
    """One stacked bar with its words and its address; the whole column can be pointed at."""

    x: float
    width: float
    label: str
    shown: bool
    title: str
    link: str
    bars: list[Bar]

    @property
    def middle(self) -> float:
        """Where its label stands."""
        return round(self.x + self.width / 2, 1)


@dataclass
class Columns:
    """A chart of stacked bars."""

    grid: list[Line]
    columns: list[Column] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """What is drawn of each column, from the bottom up."""

    name: str
    word: Any
    tone: str
    fill: str


def top_of(most: float) -> float:
    """The round figure at which a scale ends, at least 2, so that its middle is a figure too."""
    power = 10 ** max(0, math.floor(math.log10(max(most, 1))))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= max(most, 2))


def grid_of(top: float, words: Any = None) -> list[Line]:
    """Nothing, half and all of a scale; half is left out where it is no whole number."""
    steps = [0.0, top / 2, top] if top / 2 == int(top / 2) else [0.0, top]
    return [Line(_y(step, top), words(step) if words else f"{step:g}") for step in steps]


def _y(value: float, top: float) -> float:
    return round(BOTTOM - HEIGHT * value / top, 2)


def columns(series: Sequence[Series], rows: Sequence[tuple[str, str, str, Sequence[int]]], every: int) -> Columns:
    """`rows` are (label, title, link, value of each series); every `every`th label is drawn, the last one always."""
    top = top_of(max((sum(values) for *_words, values in rows), default=0))
    slot = (WIDTH - LEFT) / max(1, len(rows))
    width = round(min(slot * 0.72, 26), 2)
    found = Columns(grid_of(top))
    for n, (label, title, link, values) in enumerate(rows):
        x, level, bars = round(LEFT + n * slot + (slot - width) / 2, 2), float(BOTTOM), []
        for one, value in zip(series, values, strict=True):
            height = round(HEIGHT * value / top, 2)
            if value:
                level = round(level - height, 2)
                gap = 1 if height > 3 else 0
                inset = 0.75 if one.fill == "hollow" else 0
                bars.append(
                    Bar(
                        x + inset,
                        level + inset,
                        width - 2 * inset,
                        max(0.5, height - gap - 2 * inset),
                        one.tone,
                        one.fill,
                    )
                )
        shown = (len(rows) - 1 - n) % every == 0
        found.columns.append(Column(x, width, label, shown, title, link, bars))
    return found


@dataclass(frozen=True)
class Point:
    """A value of a line: where it stands, and its words."""

    x: float
    y: float
    title: str


@dataclass
class Path:
    """A line with gaps where nothing is known; `tag` stands at its end."""

    tone: str
    dash: bool
    tag: Any
    points: list[Point]
    pieces: list[str]

    @property
    def last(self) -> Point | None:
        """Where its name stands."""
        return self.points[-1] if self.points else None


@dataclass
class Lines:
    """A chart of lines; `labels` are (x, text)."""

    grid: list[Line]
    paths: list[Path]
    labels: list[tuple[float, str]]
    right: float


def lines(labels: Sequence[str], paths: Sequence[tuple[str, bool, Any, Sequence[tuple[float, str] | None]]], every: int,
          words: Any) -> Lines:  # fmt: skip
    """`paths` are (tone, dashed, name, values with their words, None where nothing is known)."""
    top = top_of(max((one[0] for *_words, values in paths for one in values if one), default=0))
    ends = [next((_y(one[0], top) for one in reversed(values) if one), None) for *_words, values in paths]
    named = None not in ends and all(abs(a - b) >= APART for a, b in pairwise(sorted(y for y in ends if y is not None)))
    right = WIDTH - (NAMES if named else 8)  # names at the ends of lines that meet would lie on each other
    step = (right - LEFT) / max(1, len(labels) - 1)
    xs = [round(LEFT + n * step, 1) for n in range(len(labels))]
    made = []
    for tone, dash, tag, values in paths:
        points = [Point(x, _y(one[0], top), one[1]) for x, one in zip(xs, values, strict=True) if one]
        made.append(Path(tone, dash, tag if named else "", points, _pieces(xs, values, top)))
    shown = [(x, label) for n, (x, label) in enumerate(zip(xs, labels, strict=True)) if (len(xs) - 1 - n) % every == 0]
    return Lines(grid_of(top, words), made, shown, right)


def _pieces(xs: Sequence[float], values: Sequence[tuple[float, str] | None], top: float) -> list[str]:
    pieces: list[list[str]] = [[]]
    for x, one in zip(xs, values, strict=True):
        if one is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{x},{_y(one[0], top)}")
    return [" ".join(piece) for piece in pieces if len(piece) > 1]


@dataclass(frozen=True)
class Row:
    """A horizontal bar: its name, its figure in words, how long, where it leads."""

    name: Any
    text: str
    width: float
    y: int
    link: str

    @property
    def baseline(self) -> int:
        """Where its words stand."""
        return self.y - 6


@dataclass
class Rows:
    """A chart of horizontal bars."""

    rows: list[Row]
    height: int


def rows(values: Sequence[tuple[Any, str, float, str]]) -> Rows:
    """`values` are (name, figure in words, value, link); the longest takes the whole width."""
    most = max((value for *_words, value, _link in values), default=0) or 1
    made = [
        Row(name, text, round(max(1.5, WIDTH * value / most), 1) if value else 0, 20 + 32 * n, link)
        for n, (name, text, value, link) in enumerate(values)
    ]
    return Rows(made, 32 * len(made) if made else 20)
