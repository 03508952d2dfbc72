"""Pausing or cancelling many runs: what would be done, then how far it is."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions import bulk as acts
from runs.actions.acting import Refused
from runs.forms.bulk import Many
from runs.models.bulk import KINDS, MOST
from runs.queries import bulks
from runs.queries.run_filter import Filter
from runs.views.access import absent, number, page, show


@page("steer", "GET", "HEAD", "POST")
def bulk_new(request: Any) -> HttpResponse:
    """Look at what would be done, then have it done. Sent twice, it begins once."""
    given = request.POST if request.method == "POST" else request.GET
    kind = given.get("act", "") if given.get("act") in KINDS else "pause"
    wanted = Filter.of(request.GET)
    preview = _preview(request, kind, wanted)
    form = Many(kind, preview.chosen, request.POST if request.method == "POST" else None)
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            begun = acts.begin(
                person=request.user, kind=kind, why=data["why"], chosen=data["chosen"], request_key=data["request_key"]
            )
            return redirect("bulk", begun.pk)
        except Refused as error:
            refused = error
    status = refused.status if refused else 422 if form.errors else 200
    context = {"preview": preview, "form": form, "refused": refused, "wanted": wanted, "most": MOST}
    return show(request, "runs/bulk_new.html", context, status)


def _preview(request: Any, kind: str, wanted: Filter) -> bulks.Preview:
    if request.method == "POST":
        try:
            ids = list(bulks.chosen_of(request.POST.get("chosen", "")))
        except ValueError:
            ids = []
        return bulks.preview_of(kind, request.viewer, ids)
    if request.GET.get("all"):
        return bulks.preview_all(kind, request.viewer, wanted)
    typed = request.GET.getlist("run")[:MOST]
    return bulks.preview_of(
        kind, request.viewer, [int(n) for n in typed if n.isascii() and n.isdigit() and len(n) < 19]
    )


@page()
def bulk_page(request: Any, bulk_id: int) -> HttpResponse:
    """How far it is, and what became of each run."""
    found = bulks.sheet(bulk_id, number(request, "from") or 0)
    if found is None:
        raise absent()
    return show(request, "runs/bulk.html", {"sheet": found})


@page("steer", "POST")
def bulk_stop(request: Any, bulk_id: int) -> HttpResponse:
    """Leave the rest as it is."""
    acts.stop(bulk_id, request.user)
    messages.success(request, _("Stopped. What was done stays done; the rest is as it was."))
    return redirect("bulk", bulk_id)
