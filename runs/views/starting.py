"""Choosing an agent, and starting a run of it."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from runs.actions.acting import Refused
from runs.actions.catalogue import start_within
from runs.forms.starting import Start
from runs.queries import starting as queries
from runs.views.access import absent, page, show


@page("start")
def new(request: Any) -> HttpResponse:
    """Choose an agent."""
    return show(request, "new/agents.html", {"choices": queries.choices()})


@page("start", "GET", "HEAD", "POST")
def new_run(request: Any, slug: str) -> HttpResponse:
    """Say what a run is to reach, and start it. Sent twice, it starts once."""
    choice = queries.choice(slug)
    if choice is None:
        raise absent()
    typed = request.POST if request.method == "POST" else None
    example = bool(request.GET.get("example"))
    models = queries.model_choices(choice.definition)
    ready = [(one.name, one.words) for one in models if not one.lacks]
    form = Start(choice.definition, typed, example=example, models=ready)
    refused: Refused | None = None
    if typed is not None and form.is_valid():
        try:
            run = start_within(
                form.cleaned_data["budget"], starter=request.user, agent_version=choice.version, **form.given()
            )
            return redirect("run", run.pk)
        except Refused as error:
            refused = error
    status = refused.status if refused else 422 if form.errors else 200
    context = {"choice": choice, "form": form, "refused": refused, "example": example}
    context["lacks"] = sorted({one.lacks for one in models if one.lacks})
    return show(request, "new/run.html", context, status)
