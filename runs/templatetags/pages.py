"""Small words for templates: icons, times, exact text, request ids."""

import json
from datetime import UTC, datetime
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, to_locale

from runs.queries import display, words

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
def packaged(text: str) -> str:
    """What a package of tools wrote for people, in their language if it brings it."""
    return words.packaged(str(text))


@register.filter
def moment(us: int | None) -> SafeString | str:
    """When something happened, as short as it stays clear: 10:42 today, 1 Dec 10:42 before; in the viewer's zone."""
    if not us:
        return ""
    at, today = _local(us), datetime.now(UTC).astimezone(timezone.get_current_timezone())
    if at.date() == today.date():
        return _time(us, "H:i")
    # Translators: day and month, then the time; letters as in Django's date filter.
    return _time(us, pgettext("time format", "j M H:i") if at.year == today.year else pgettext("time format", "j M Y"))


@register.filter
def clock(us: int | None) -> SafeString | str:
    """Time of day with seconds, of microseconds since 1970, in the viewer's zone; day and UTC stand in the title."""
    return _time(us, "H:i:s")


@register.filter
def plain_clock(us: int) -> str:
    """As `clock`, as bare text for a drawing."""
    return date_format(_local(us), "H:i:s")


@register.filter
def stamp(us: int | None) -> SafeString | str:
    """Day and time with seconds, in the viewer's zone, for the record."""
    return _time(us, "Y-m-d H:i:s")


def _local(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC).astimezone(timezone.get_current_timezone())


def _time(us: int | None, form: str) -> SafeString | str:
    if not us:
        return ""
    at = _local(us)
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.isoformat(timespec="milliseconds"), utc.strftime("%Y-%m-%d %H:%M:%S UTC"), date_format(at, form),
    )  # fmt: skip


@register.filter
def took(ms: int | None) -> str:
    """A duration in words: 0.2 s, 3 min 5 s."""
    if not ms:
        return ""
    seconds = ms / 1000
    if seconds < 60:
        return _("{s} s").format(s=f"{seconds:.1f}")
    return _("{m} min {s} s").format(m=int(seconds // 60), s=int(seconds % 60))


@register.filter
def left(seconds: int | None) -> str:
    """A remaining time: 4:12, 42 min, 2 h."""
    if seconds is None:
        return ""
    if seconds < 900:
        return f"{seconds // 60}:{seconds % 60:02d}"
    return _("{m} min").format(m=seconds // 60) if seconds < 5400 else _("{h} h").format(h=round(seconds / 3600))


@register.filter
def short(digest: str) -> str:
    """The beginning of a digest, in groups."""
    return " ".join(digest[i : i + 4] for i in range(0, 16, 4))


@register.simple_tag
def place_url(name: str) -> str:
    """The address of a place; of the inbox while the place does not exist."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return reverse("inbox")


@register.simple_tag(takes_context=True)
def request_id(context: Any) -> str:
    """The id under which this request is found in the log."""
    request = context.get("request")
    return str(getattr(request, "request_id", "")) if request is not None else ""


@register.filter
def language_tag(code: str) -> str:
    """Django's zh-hans as HTML has it: zh-Hans."""
    return to_locale(code).replace("_", "-")
