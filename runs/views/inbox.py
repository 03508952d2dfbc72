"""The inbox: a list by urgency, and beside it the page of one item, which has an address of its own."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.actions import views as acts
from runs.actions.acting import Refused
from runs.queries import inbox as queries
from runs.queries import panes
from runs.views.access import page, show

Key = tuple[int, ...]


@page()
def inbox(request: Any) -> HttpResponse:
    """What waits for a person."""
    return with_list(request, "inbox/none.html", {})


def with_list(request: Any, pane: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """The page of an item with the list beside it; the pane or the list alone where a script asks for that."""
    wanted = queries.Wanted.of(request.GET, request.viewer)
    part = request.htmx.target if request.htmx and not request.htmx.history_restore_request else ""
    common = {"pane": pane, "wanted": wanted, "viewer": request.viewer}
    if part == "detail":
        if pane == "inbox/none.html":
            common["rest"] = panes.rest(request.viewer, queries.counts(request.viewer))
        answer = render(request, "inbox/pane.html", common | context, status=status)
        if status >= 400:
            answer["HX-Push-Url"] = "false"
        return answer
    listing = panes.listing(wanted, request.viewer, request.GET.get("from", ""))
    common |= {"listing": listing, "counts": listing.counts}
    if part == "list":
        return render(request, "inbox/list.html", common | context)
    if pane == "inbox/none.html":
        common["rest"] = panes.rest(request.viewer, listing.counts)
    return show(request, "inbox/page.html", common | context, status)


def go_on(request: Any, key: Key | None) -> HttpResponse:
    """After a decision: the next item of the view that one came from, or the inbox where there is none."""
    wanted = queries.Wanted.of(request.GET, request.viewer)
    following = queries.following(wanted, request.viewer, key)
    place = following.url if following else reverse("inbox")
    return redirect(f"{place}?{wanted.query}")


@page("see", "POST")
def save_view(request: Any) -> HttpResponse:
    """Keep the filter that one looks through under a name."""
    given = QueryDict(request.POST.get("query", ""))
    wanted = queries.Wanted.of(given.dict(), request.viewer)
    try:
        view = acts.save_view(request.user, request.POST.get("name", ""), wanted.query)
        messages.success(request, _("Saved as “{name}”.").format(name=view.name))
    except Refused as error:
        messages.error(request, str(error))
    return redirect(f"{reverse('inbox')}?{wanted.query}")


@page("see", "POST")
def drop_view(request: Any, view_id: int) -> HttpResponse:
    """Let one of one's own views go."""
    acts.drop_view(view_id, request.user)
    messages.success(request, _("The view is deleted."))
    return redirect("inbox")
