"""Every page in its reader's language, theme and zone."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from runs.queries.preferences import THEMES, Preferences, chosen, from_browser

PICTURES = {"": "system", "light": "sun", "dark": "moon"}


def preferences_of(request: HttpRequest) -> Preferences:
    """What a signed-in person chose wins, then cookies, then what the browser accepts."""
    mine = from_browser(request.COOKIES, request.headers.get("Accept-Language", ""))
    try:
        return mine.over(chosen(request.user)) if request.user.is_authenticated else mine
    except DatabaseError:  # while the database is away even an error page has a language and a theme
        return mine


def speaking(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: after the one that says who is signed in."""

    def middleware(request: Any) -> HttpResponse:
        request.preferences = preferences_of(request)
        with request.preferences.spoken():
            answer = get_response(request)
        answer.setdefault("Content-Language", request.preferences.language)
        patch_vary_headers(answer, ("Accept-Language", "Cookie"))
        return answer

    return middleware


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what the frame of every page needs, error pages included."""
    return {
        "prefs": getattr(request, "preferences", None) or Preferences(),
        "languages": settings.LANGUAGES,
        "themes": [(value, word, PICTURES[value]) for value, word in THEMES.items()],
        "now": time.time_ns() // 1000,
    }
