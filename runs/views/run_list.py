"""The list of runs, and the same runs as a file."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse

from runs.queries import bulks, exporting
from runs.queries import run_list as queries
from runs.queries.run_filter import WITHIN, Filter
from runs.views.access import number, page, show


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
    return _file(request, exporting.csv_lines(Filter.of(request.GET)), "text/csv; charset=utf-8", "runs.csv")


@page()
def export_jsonl(request: Any) -> HttpResponse:
    """The runs of the filter, one JSON object a line."""
    return _file(
        request, exporting.json_lines(Filter.of(request.GET)), "application/jsonl; charset=utf-8", "runs.jsonl"
    )


def _file(request: Any, pieces: Iterator[str], kind: str, name: str) -> Any:
    """A file that is read from the database while it is sent: its size costs no memory."""
    content: Any = _from_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(content, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


async def _from_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Piece by piece from a thread: the server's own loop would collect a plain iterator as a whole first."""
    following = database_sync_to_async(partial(next, pieces, None))
    while (piece := await following()) is not None:
        yield piece
