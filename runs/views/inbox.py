"""The inbox."""

from typing import Any

from django.http import HttpResponse

from runs.queries import inbox as inbox_queries
from runs.views.access import number, page, show


@page()
def inbox(request: Any) -> HttpResponse:
    """What waits for a person."""
    found = inbox_queries.inbox(request.viewer, number(request, "after") or 0)
    return show(request, "inbox/page.html", {"inbox": found, "inbox_count": found.total})
