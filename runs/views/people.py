"""People: who is in which group, what that lets them do, and, for admins, how to change it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from runs.actions.acting import Refused, need
from runs.actions.people import set_access
from runs.forms.people import Access
from runs.queries import people as queries
from runs.views.access import absent, page, show


@page()
def people_list(request: Any) -> HttpResponse:
    """People by name; the address holds the filter."""
    group = request.GET.get("group", "")
    found = queries.people_list(group, request.GET.get("after", "")[:150])
    return show(request, "people/list.html", {"list": found, "group": group, "roles": queries.role_table()})


@page("see", "GET", "HEAD", "POST")
def person(request: Any, person_id: int) -> HttpResponse:
    """One person; on POST an admin sets their groups."""
    if request.method == "POST":
        need(request.user, "set_access")
    sheet = queries.person_sheet(person_id)
    if sheet is None:
        raise absent()
    stands = {"groups": sheet.groups, "active": sheet.person.is_active}
    form = Access(request.POST if request.method == "POST" else None, initial=stands)
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            set_access(request.user, person_id, given["groups"], active=given["active"], reason=given["why"])
            messages.success(request, _("Changed, with your reason in the record. It counts from their next act on."))
            return redirect("person", person_id)
        except Refused as error:
            refused = error
    context = {"sheet": sheet, "form": form, "refused": refused, "may_set": request.viewer.may("set_access")}
    return show(request, "people/person.html", context, refused.status if refused else 422 if form.errors else 200)
