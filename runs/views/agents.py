"""Agents: what each may do, and how its runs came out. Drafting and publishing them is for packages, so far."""

from typing import Any

from django.http import HttpResponse

from runs.queries import agents as queries
from runs.views.access import absent, number, page, show


@page()
def agent_list(request: Any) -> HttpResponse:
    """All agents with their current versions."""
    return show(request, "agents/list.html", {"agents": queries.agent_list(), "days": queries.DAYS})


@page()
def agent(request: Any, slug: str) -> HttpResponse:
    """One agent in words; the address holds the version."""
    sheet = queries.agent_sheet(slug, number(request, "version"))
    if sheet is None:
        raise absent()
    return show(request, "agents/agent.html", {"sheet": sheet, "days": queries.DAYS})
