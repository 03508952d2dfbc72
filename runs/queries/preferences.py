"""In which language, theme and zone somebody reads: what they chose, else what their browser says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy as _
from django.utils.translation.trans_real import parse_accept_lang_header

from runs.models import Preference

LANGUAGE, THEME, ZONE = settings.LANGUAGE_COOKIE_NAME, "agentops-theme", "agentops-zone"
THEMES = {"": _("System"), "light": _("Light"), "dark": _("Dark")}
FIELDS = ("language", "theme", "zone", "keys", "notify")


@dataclass(frozen=True)
class Preferences:
    """`language` is a code of LANGUAGES; `theme` and `zone` may be empty: as the system, UTC."""

    language: str = settings.LANGUAGE_CODE
    theme: str = ""
    zone: str = ""
    keys: bool = True
    notify: bool = False

    def over(self, chosen: dict[str, Any]) -> Preferences:
        """These, but for what somebody chose."""
        return replace(self, **{name: value for name, value in chosen.items() if value != ""})

    @contextmanager
    def spoken(self) -> Iterator[None]:
        """What is rendered inside is in this language, with times of this zone."""
        with translation.override(self.language), timezone.override(zone_of(self.zone)):
            yield


@lru_cache(256)
def zone_of(name: str) -> tzinfo:
    """A zone by its name; UTC where there is none of that name (a cookie may say anything)."""
    try:
        return ZoneInfo(name) if name and len(name) < 64 else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def from_browser(cookies: dict[str, str], accepted: str = "") -> Preferences:
    """What cookies say, and the languages that a browser accepts."""
    theme = cookies.get(THEME, "")
    return Preferences(_language(cookies.get(LANGUAGE, ""), accepted), theme if theme in THEMES else "", _zone(cookies))


def _zone(cookies: dict[str, str]) -> str:
    name = cookies.get(ZONE, "")
    return name if zone_of(name) is not UTC else ""


def _language(cookie: str, accepted: str) -> str:
    wanted = [cookie, *(code for code, _quality in parse_accept_lang_header(accepted))]
    for code in wanted:
        try:
            return translation.get_supported_language_variant(code)
        except LookupError:
            continue
    return settings.LANGUAGE_CODE


def chosen(person: Any) -> dict[str, Any]:
    """What a signed-in person chose, one query; nothing while the database is away: the page itself will say so."""
    try:
        return Preference.objects.filter(pk=person.pk).values(*FIELDS).first() or {}
    except DatabaseError:
        return {}
