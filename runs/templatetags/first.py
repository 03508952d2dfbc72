"""What is said before there is anything to say, and the mark on what is only for show."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.queries import first_run

register = template.Library()


@register.inclusion_tag("new/greeting.html", takes_context=True)
def greeting(context: Any) -> dict[str, Any]:
    """The three first steps while no run exists; nothing afterwards. Needs `viewer` in the context."""
    viewer = context["viewer"]
    return {"greeting": first_run.greeting(viewer), "viewer": viewer}


@register.simple_tag
def demo_mark(slug: str = "") -> SafeString | str:
    """Says that what this agent does is for show; without a slug: that such agents are installed here."""
    if not (first_run.is_demo(slug) if slug else first_run.any_demo()):
        return ""
    told = _("Agents of the demo work on invented orders. Nothing real is paid, sent or booked.")
    return format_html('<span class="badge demo" title="{}">{}</span>', told, _("Demo data"))
