"""Small words for lists: how long ago, how much, and an address that keeps its filter."""

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.engine.limits import SECOND
from runs.queries.run_list import since
from runs.templatetags.pages import stamp, took

register = template.Library()


@register.simple_tag
def ago(us: int, clock: int) -> SafeString:
    """How long before `clock` something was, both in microseconds since 1970; day, time and UTC stand in the title."""
    at = datetime.fromtimestamp(us / SECOND, UTC)
    title = f"{_plain(us)} ({at:%Y-%m-%d %H:%M:%S} UTC)"
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), title, since(us, clock))


def _plain(us: int) -> str:
    return str(stamp(us)).partition(">")[2].partition("<")[0]


@register.filter
def duration(ms: int) -> str:
    """A duration in two parts at most: 40 ms, 0.2 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    minutes = ms // 60_000
    if 0 < ms < 100:
        return _("{n} ms").format(n=ms)
    if minutes < 60:
        return took(ms) or _("{n} s").format(n=0)
    if minutes < 24 * 60:
        return _("{h} h {m} min").format(h=minutes // 60, m=minutes % 60)
    return _("{d} d {h} h").format(d=minutes // 1440, h=minutes % 1440 // 60)
