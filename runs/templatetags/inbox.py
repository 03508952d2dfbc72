"""Words of the inbox for templates."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
LONG = 24  # characters; what is longer may break anywhere


@register.filter
def whole(text: str) -> SafeString:
    """A text in which a number such as O-1042 is not broken over two lines."""
    words = (_whole(word) for word in str(text).split(" "))
    return format_html_join(" ", "{}", ((word,) for word in words))


def _whole(word: str) -> SafeString:
    return format_html('<span class="unbroken">{}</span>' if "-" in word and len(word) < LONG else "{}", word)
