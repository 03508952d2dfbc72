"""Incidents: what was held to be true and turned out not to be, and what people found out about it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions.acting import Refused, need
from runs.actions.runs import close_incident
from runs.forms import acts as forms
from runs.queries import incidents as queries
from runs.views.access import absent, number, page, show


@page()
def incident_list(request: Any) -> HttpResponse:
    """Open ones, or all; the address holds the filter."""
    status = "all" if request.GET.get("status") == "all" else "open"
    found = queries.incident_list(status, number(request, "before"))
    return show(request, "incidents/page.html", {"list": found, "status": status})


@page("see", "GET", "HEAD", "POST")
def incident(request: Any, incident_id: int) -> HttpResponse:
    """Both sides of the contradiction; on POST a person says what was found, which closes it."""
    if request.method == "POST":
        need(request.user, "close_incident")
    sheet = queries.incident_sheet(incident_id, request.viewer)
    if sheet is None:
        raise absent()
    form = forms.Found(request.POST if request.method == "POST" else None)
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        try:
            close_incident(incident_id, request.user, form.cleaned_data["what"])
            messages.success(request, _("The incident is closed; what you found is in the record."))
            return redirect("incident", incident_id)
        except Refused as error:
            refused = error
    status = refused.status if refused else 422 if form.errors else 200
    return show(request, "incidents/incident.html", {"sheet": sheet, "form": form, "refused": refused}, status)
