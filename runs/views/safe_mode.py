"""The page of safe mode: what was found, what may have been done already, and the admin's way out."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions.acting import Refused, need
from runs.actions.safe_mode import accept
from runs.audit import safe_mode
from runs.forms import acts as forms
from runs.models import Run, SafeMode
from runs.views.access import page, show

SHOWN = 200


@page("see", "GET", "HEAD", "POST")
def safe_mode_page(request: Any) -> HttpResponse:
    """Everybody may look; an admin ends it."""
    form = forms.Accept(request.POST if request.method == "POST" else None)
    refused: Refused | None = None
    if request.method == "POST":
        need(request.user, "accept_restore")
        try:
            if form.is_valid():
                done = accept(request.user, form.cleaned_data["why"], hold_all=form.cleaned_data["hold"] == "all")
                messages.success(request, _("Accepted, and in the record as reason “{}”.").format(done.reason))
                return redirect("safe-mode")
        except Refused as error:
            if error.status in (403, 404):
                raise
            refused = error
    found = safe_mode.in_force()
    here = Run.objects.in_bulk([entry["uid"] for entry in found.further[:SHOWN]], field_name="uid") if found else {}
    context = {
        "safe_mode": None,  # the page says more than the banner
        "found": found, "form": form, "refused": refused, "may_accept": request.viewer.may("accept_restore"),
        "further": [(entry, here.get(entry["uid"])) for entry in found.further[:SHOWN]] if found else [],
        "more": max(0, len(found.further) - SHOWN) if found else 0,
        "past": SafeMode.objects.filter(in_force=False).select_related("person").order_by("-pk")[:20],
    }  # fmt: skip
    return show(request, "health/safe_mode.html", context, refused.status if refused else 422 if form.errors else 200)
