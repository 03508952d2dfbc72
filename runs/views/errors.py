"""Error pages. Each shows the id under which its request stands in the log."""

import logging
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from runs.queries.preferences import Preferences
from runs.queries.viewer import Viewer
from runs.views.access import name_request, show

log = logging.getLogger("runs.pages")


def _page(request: Any, status: int, template: str, why: str) -> HttpResponse:
    """With the frame around it for somebody who may see it, so that they find their way."""
    name = name_request(request)
    log.info("%s %s %s: %s %s", name, request.method, request.path, status, why)
    try:
        if not hasattr(request, "viewer") and request.user.is_authenticated:
            request.viewer = Viewer.of(request.user)
        return show(request, template, {}, status)
    except (AttributeError, DatabaseError):  # refused before anybody was known, or while the database is away
        return HttpResponse(render_to_string(template, {"request": request, "prefs": Preferences()}), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _page(request, 400, "400.html", type(exception).__name__)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return _page(request, 403, "403.html", "")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    return _page(request, 404, "404.html", "")


def server_error(request: HttpRequest) -> HttpResponse:
    """500: the log has the traceback beside this id. The page asks nothing of the database: it may be what failed."""
    log.error("%s %s %s: failed", name_request(request), request.method, request.path)
    known = {"request": request, "prefs": getattr(request, "preferences", None) or Preferences()}
    return HttpResponse(render_to_string("500.html", known), status=500)


def csrf_failure(request: HttpRequest, reason: str = "", **_kwargs: Any) -> HttpResponse:
    """A form without its token: too old, or not from our pages."""
    return _page(request, 403, "403_csrf.html", reason)
