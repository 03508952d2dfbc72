"""The list of runs."""

from typing import Any

from django.http import HttpResponse

from runs.queries import runs as queries
from runs.views.access import number, page, show


@page()
def run_list(request: Any) -> HttpResponse:
    """Runs, newest first; the address holds the filter."""
    status = request.GET.get("status", "")
    found = queries.run_list(status, number(request, "before"))
    return show(request, "runs/page.html", {"list": found, "status": status})
