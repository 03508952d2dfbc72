"""Models, what they cost, and what may be spent."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions.acting import Refused, need
from runs.actions.catalogue import set_budget, set_model
from runs.forms.catalogue import BudgetForm, Model
from runs.queries import catalogue as queries
from runs.views.access import absent, page, show

METHODS = ("GET", "HEAD", "POST")


@page("see", *METHODS)
def models(request: Any) -> HttpResponse:
    """The catalogue and the budgets; on POST an admin sets a budget."""
    typed = request.POST if request.method == "POST" else None
    if typed is not None:
        need(request.user, "set_policy")
    form = BudgetForm(typed)
    refused: Refused | None = None
    if typed is not None and form.is_valid():
        try:
            set_budget(request.user, *form.given(), form.cleaned_data["why"])
            messages.success(request, _("Set, with your reason in the record. It counts from the next request on."))
            return redirect("models")
        except Refused as error:
            refused = error
    today, budgets = queries.budgets()
    context = {
        "models": queries.latest(), "today": today, "budgets": budgets, "changes": queries.history(), "form": form,
        "refused": refused, "may_set": request.viewer.may("set_policy"),
    }  # fmt: skip
    return show(request, "models/list.html", context, refused.status if refused else 422 if form.errors else 200)


@page("see", *METHODS)
def model(request: Any, name: str) -> HttpResponse:
    """One model with its versions; `new` for one that is not there yet. On POST an admin adds a version."""
    typed = request.POST if request.method == "POST" else None
    sheet = None if name == "new" else queries.sheet(name)
    if typed is not None or name == "new":
        need(request.user, "set_policy")
    if sheet is None and name != "new":
        raise absent()
    form = Model(sheet.entry if sheet else None, typed)
    refused: Refused | None = None
    if typed is not None and form.is_valid():
        named = sheet.entry.name if sheet else form.cleaned_data["name"].strip()
        try:
            data = form.cleaned_data
            made = set_model(request.user, named, form.given(), data["why"], data["based_on"])
            messages.success(request, _("Kept as a new version. It counts from the next request on."))
            return redirect("model", made.name)
        except Refused as error:
            refused = error
    context = {"sheet": sheet, "form": form, "refused": refused, "may_set": request.viewer.may("set_policy")}
    return show(request, "models/model.html", context, refused.status if refused else 422 if form.errors else 200)
