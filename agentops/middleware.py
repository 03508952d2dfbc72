"""What every answer gets: static files without a second server, and headers that keep private pages private."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

PERMISSIONS = ", ".join(
    f"{feature}=()" for feature in ("camera", "microphone", "geolocation", "payment", "usb", "browsing-topics")
)


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise, answering in one piece.

    Its file response is a synchronous iterator, for which Django warns under ASGI at every file; ours are small.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """The file with WhiteNoise's own headers."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        answer = HttpResponse(body, status=int(found.status))
        del answer["Content-Type"]
        for key, value in found.headers:
            answer[key] = value
        return answer


def private_answers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Pages show runs: no cache keeps them after sign-out, and no page gets a device."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.setdefault("Cache-Control", "no-store")
        response.setdefault("Permissions-Policy", PERMISSIONS)
        return response

    return middleware
