"""The overview: what needs the viewer, and how it went."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from runs.queries import charts
from runs.queries import overview as queries
from runs.queries.health import brief
from runs.templatetags.admin_places import count, lasted
from runs.templatetags.costs import plain
from runs.views.access import page, show


@page()
def overview(request: Any) -> HttpResponse:
    """The address holds the range."""
    found = queries.overview(request.GET.get("range", ""))
    # Translators: weekday, day and month, time. Letters as in Django's date filter.
    context = {
        "today": date_format(timezone.localtime(), pgettext("time format", "l j F, H:i")),
        "found": found, "needs": queries.needs(request.viewer), "ranges": queries.RANGES, "system": brief(),
        "series": [(one, found.totals.get(one.name, 0)) for one in queries.SERIES],
        "outcomes": _outcomes(found), "outcome_rows": _outcome_rows(found), "latency": _latency(found),
        "latency_rows": _latency_rows(found), "stops": _stops(found), "spent": _spent(found),
    }  # fmt: skip
    return show(request, "overview/page.html", context)


def _outcomes(found: queries.Overview) -> charts.Columns:
    rows = []
    for n, bucket in enumerate(found.counts):
        values = [bucket.get(one.name, 0) for one in queries.SERIES]
        told = ", ".join(f"{count(v)} {one.word}" for v, one in zip(values, queries.SERIES, strict=True) if v)
        rows.append((found.range.label(n), f"{found.range.words(n)}: {told or _('none')}", found.range.link(n), values))
    return charts.columns(queries.SERIES, rows, found.range.every)


def _outcome_rows(found: queries.Overview) -> list[tuple[str, str, list[tuple[int, str]]]]:
    """(bucket, its list of runs, for each series its number and its list where there is one), newest first."""
    rows = []
    for n, bucket in enumerate(found.counts):
        cells = [
            (bucket.get(one.name, 0), "" if one.name == queries.GOING else found.range.link(n, one.name))
            for one in queries.SERIES
        ]
        rows.append((found.range.words(n), found.range.link(n), cells))
    return rows[::-1]


def _latency(found: queries.Overview) -> charts.Lines | None:
    if not found.latency.n:
        return None
    labels = [found.range.label(n) for n in range(found.range.buckets)]
    paths = []
    for tone, dash, tag, name in (("quiet", True, _("slowest 5 %"), "p95"), ("accent", False, _("typical"), "p50")):
        values = []
        for n in range(found.range.buckets):
            ms = getattr(found.by_bucket.get(n), name, None)
            words = f"{found.range.words(n)}, {tag}: {lasted(ms)}"
            values.append(None if ms is None else (ms / 60_000, words))
        paths.append((tone, dash, tag, values))
    return charts.lines(labels, paths, found.range.every, lambda minutes: f"{minutes:g}")


def _latency_rows(found: queries.Overview) -> list[tuple[str, queries.Latency]]:
    empty = queries.Latency()
    return [(found.range.words(n), found.by_bucket.get(n, empty)) for n in reversed(range(found.range.buckets))]


def _stops(found: queries.Overview) -> charts.Rows:
    return charts.rows([
        (queries.REASONS.get(reason, reason or _("not readable here")), count(n), n, "/runs?status=stopped")
        for reason, n in found.stops
    ])  # fmt: skip


def _spent(found: queries.Overview) -> charts.Rows:
    rows = []
    for one in found.spent:
        told = _("{n} tokens").format(n=count(one.tokens)) if one.tokens else _("not told")
        told = f"{told}, {plain(one.cost)}" if one.cost else told
        rows.append((one.name, told, one.tokens, f"/runs?agent={one.slug}&within={found.range.name}"))
    return charts.rows(rows[:8])
