"""Numbers in the viewer's language, and the words of durations, for the places of admins."""

from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

register = template.Library()


@register.filter
def count(value: int | None) -> str:
    """1,284; a dash where nothing is known."""
    return "–" if value is None else str(number_format(value, decimal_pos=0, force_grouping=True))


@register.filter
def percent(value: int | None) -> str:
    """90 %; a dash where nothing is known."""
    return "–" if value is None else f"{count(value)} %"


@register.filter
def lasted(ms: int | None) -> str:
    """A duration, as exact as it matters: 0.4 s, 12 s, 2:24 min, 3 h 5 min, 4 days; a dash where nothing is known."""
    if ms is None:
        return "–"
    seconds = ms / 1000
    if seconds < 10:
        return _("{n} s").format(n=number_format(seconds, decimal_pos=1))
    if seconds < 60:
        return _("{n} s").format(n=round(seconds))
    if seconds < 3600:
        return _("{n} min").format(n=f"{int(seconds // 60)}:{int(seconds % 60):02d}")
    hours = int(seconds // 3600)
    if hours < 48:
        return _("{hours} h {minutes} min").format(hours=hours, minutes=int(seconds % 3600 // 60))
    return ngettext("{n} day", "{n} days", hours // 24).format(n=hours // 24)


@register.filter
def ago(us: int | None, now: int) -> str:
    """How long before `now`, both microseconds."""
    return "–" if not us else str(_("{time} ago").format(time=lasted(max(0, now - us) // 1000)))


@register.filter
def get(mapping: Any, key: str) -> Any:
    """A value by its key; templates cannot index with a variable."""
    return mapping.get(key)


@register.filter
def unlocal(value: float) -> str:
    """A figure for the machine: an SVG knows no decimal comma."""
    return f"{value:g}"
