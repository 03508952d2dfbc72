"""Error pages. Each shows the id under which its request stands in the log."""

import logging
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs.views.access import name_request

log = logging.getLogger("runs.pages")


def _page(request: HttpRequest, status: int, template: str, why: str) -> HttpResponse:
    name = name_request(request)
    log.log(
        logging.ERROR if status == 500 else logging.INFO,
        "%s %s %s: %s %s",
        name,
        request.method,
        request.path,
        status,
        why,
    )
    return render(request, template, status=status)


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
    """500: the log has the traceback beside this id."""
    return _page(request, 500, "500.html", "failed")


def csrf_failure(request: HttpRequest, reason: str = "", **_kwargs: Any) -> HttpResponse:
    """A form without its token: too old, or not from our pages."""
    return _page(request, 403, "403_csrf.html", reason)
