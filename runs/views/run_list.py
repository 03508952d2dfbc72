"""The list of runs, and the same runs as a file."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse

from runs.queries import bulks, exporting
from runs.queries import run_list as queries
from runs.queries.run_filter import WITHIN, Filter
from runs.views.access import number, page, show
from runs.views.files import as_file


@page()
def run_list(request: Any) -> HttpResponse:
    """Runs, newest first; the address holds the filter."""
    wanted, before = Filter.of(request.GET), number(request, "before")
    found = queries.run_list(wanted, before)
    watched = [("run", row.run.pk) for row in found.rows]
    context = {
        "list": found, "wanted": wanted, "all_address": wanted.but(status="").address, "before": before,
        "agents": queries.agents(), "starters": queries.starters(), "bulks": bulks.under_way(),
        "within": [(key, word) for key, (_, word) in WITHIN.items()], "picked": request.GET.get("pick") == "page",
        "socket": urlencode([*wanted.given.items(), *watched, *([] if before else [("top", found.top)])]),
    }  # fmt: skip
    return show(request, "runs/page.html", context)


@page()
def export_csv(request: Any) -> HttpResponse:
    """The runs of the filter as a table."""
    return as_file(request, exporting.csv_lines(Filter.of(request.GET)), "text/csv; charset=utf-8", "runs.csv")


@page()
def export_jsonl(request: Any) -> HttpResponse:
    """The runs of the filter, one JSON object a line."""
    return as_file(
        request, exporting.json_lines(Filter.of(request.GET)), "application/jsonl; charset=utf-8", "runs.jsonl"
    )
