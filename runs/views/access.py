"""Who gets in: one decorator for every page, and what the page says when somebody does not."""

import logging
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from runs import rights
from runs.actions.acting import Refused
from runs.engine.events import UnknownEvent
from runs.engine.state import UnreadableState
from runs.queries.shell import places, shell
from runs.queries.viewer import Viewer

log = logging.getLogger("runs.pages")
View = Callable[..., HttpResponse]
UNREADABLE = (
    "This run was recorded by another version of AgentOps than the one that runs here. Nothing here touches it. "
    "An admin can see why with `manage.py upgrade_check`."
)
GONE = "There is nothing here."


class Request(HttpRequest):
    """A request that passed `page`."""

    viewer: Viewer
    request_id: str


def page(act: str = "see", *methods: str) -> Callable[[View], View]:
    """Let in who may do `act`; GET alone unless `methods` says otherwise.

    A stranger signs in first. A person without a group gets what an absent id gets. `Refused` becomes a page with its
    status.
    """

    def decorate(view: View) -> View:
        @require_http_methods([*(methods or ("GET", "HEAD"))])
        @wraps(view)
        def guarded(request: Any, *args: Any, **options: Any) -> HttpResponse:
            name_request(request)
            if not request.user.is_authenticated:
                return _sign_in(request)
            request.viewer = Viewer.of(request.user)
            try:
                if not request.viewer.may("see"):
                    raise Refused(GONE, 404)
                if not request.viewer.may(act):
                    groups = _(" or ").join(_(name) for name in sorted(rights.ACTS[act]))
                    raise Refused("This needs the group {groups}; an admin can add you.", 403, groups=groups)
                answer = view(request, *args, **options)
            except Refused as error:
                answer = refused(request, error)
            except (UnreadableState, UnknownEvent) as error:
                log.error("%s %s: %s", request.request_id, request.path, error)
                answer = refused(request, Refused(UNREADABLE, 409))
            answer["Cache-Control"] = "no-store"
            return answer

        return guarded

    return decorate


def _sign_in(request: Any) -> HttpResponse:
    if request.htmx:
        return HttpResponseClientRedirect("/sign-in")
    back = request.get_full_path() if request.method in ("GET", "HEAD") else "/"
    return redirect_to_login(back)


def name_request(request: Any) -> str:
    """Give the request the id that its error page shows and the log holds."""
    if not getattr(request, "request_id", ""):
        request.request_id = f"req-{secrets.token_hex(4)}"
    return str(request.request_id)


PLACES = {
    "inbox": ("inbox", "approval", "approve", "reject", "edit", "question", "answer", "attest", "stopped"),
    "incidents": ("incidents", "incident"),
    "agents": ("agents", "agent"),
    "tools": ("tools", "tool", "policies"),
    "models": ("models", "model"),
    "people": ("people", "person"),
    "overview": ("overview",),
    "health": ("health", "safe-mode"),
    "": ("password", "preferences"),
}


def _place(request: Any) -> str:
    """Which of the places in the frame this page belongs to."""
    name = getattr(request.resolver_match, "url_name", "")
    return next((place for place, names in PLACES.items() if name in names), "runs" if name else "")


def show(request: Any, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """A page with its frame: who is looking, and how much waits."""
    viewer = getattr(request, "viewer", None)
    frame: dict[str, Any] = {"viewer": None, "place": ""}
    if viewer is not None and viewer.may("see"):
        around = shell(viewer, context.get("counts"))
        frame = {"viewer": viewer, "place": _place(request), "shell": around, "places": places()}
    return render(request, template, frame | context, status=status)


def refused(request: Any, error: Refused) -> HttpResponse:
    """The page of an act that was not done."""
    log.info("%s %s %s refused %s: %s", request.request_id, request.method, request.path, error.status, error)
    if error.status == 404:
        return show(request, "404.html", {}, 404)
    if error.status == 403:
        return show(request, "403.html", {"why": str(error), "admins": rights.admins()}, 403)
    return show(request, "refused.html", {"refused": error}, error.status)


def absent() -> Refused:
    """What an id that does not exist gets, and everything that one may not see."""
    return Refused(GONE, 404)


def number(request: HttpRequest, name: str) -> int | None:
    """A number in the address; None where it is missing or no number."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
