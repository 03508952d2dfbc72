"""Small words for templates: icons, times, exact text, request ids."""

import json
from datetime import UTC, datetime
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.queries import display

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """A picture beside a word; the word carries the meaning."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#i-{}"/></svg>', static("icons.svg"), name)


@register.filter
def visible(text: Any) -> str:
    """Invisible characters as ⟦U+XXXX⟧."""
    return display.visible(str(text))


@register.filter
def pretty(text: str) -> str:
    """Stored JSON, laid out for reading."""
    return display.pretty(text)


@register.filter
def as_json(value: Any) -> str:
    """A value as JSON for reading."""
    return display.visible_layout(json.dumps(value, indent=2, ensure_ascii=False))


@register.filter
def clock(us: int | None) -> SafeString | str:
    """Time of day of microseconds since 1970; the day stands in the title."""
    return _time(us, "%H:%M:%S")


@register.filter
def stamp(us: int | None) -> SafeString | str:
    """Day and time of microseconds since 1970, UTC."""
    return _time(us, "%Y-%m-%d %H:%M:%S UTC")


def _time(us: int | None, form: str) -> SafeString | str:
    if not us:
        return ""
    at = datetime.fromtimestamp(us / 1_000_000, UTC)
    full = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(timespec="milliseconds"), full, at.strftime(form)
    )


@register.filter
def took(ms: int | None) -> str:
    """A duration in words: 0.2 s, 3 min 5 s."""
    if not ms:
        return ""
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


@register.filter
def left(seconds: int | None) -> str:
    """A remaining time: 4:12, 42 min, 2 h."""
    if seconds is None:
        return ""
    if seconds < 900:
        return f"{seconds // 60}:{seconds % 60:02d}"
    return f"{seconds // 60} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


@register.filter
def short(digest: str) -> str:
    """The beginning of a digest, in groups."""
    return " ".join(digest[i : i + 4] for i in range(0, 16, 4))


@register.simple_tag(takes_context=True)
def request_id(context: Any) -> str:
    """The id under which this request is found in the log."""
    request = context.get("request")
    return str(getattr(request, "request_id", "")) if request is not None else ""
