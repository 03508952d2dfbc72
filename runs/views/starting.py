"""Choosing an agent, and starting a run of it."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.forms.starting import Start
from runs.models import Agent
from runs.queries import runs as queries
from runs.views.access import absent, page, show


@page("start")
def new(request: Any) -> HttpResponse:
    """Choose an agent."""
    return show(request, "new/agents.html", {"agents": queries.agents()})


@page("start", "GET", "HEAD", "POST")
def new_run(request: Any, slug: str) -> HttpResponse:
    """Say what a run is to reach, and start it. Sent twice, it starts once."""
    agent = Agent.objects.filter(slug=slug).first()
    if agent is None:
        raise absent()
    version = agent.current
    form = Start(version.definition, request.POST if request.method == "POST" else None)
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        try:
            run = acts.start_run(starter=request.user, agent_version=version, **form.given())
            return redirect("run", run.pk)
        except Refused as error:
            refused = error
    status = refused.status if refused else 422 if form.errors else 200
    return show(request, "new/run.html", {"agent": agent, "version": version, "form": form, "refused": refused}, status)
