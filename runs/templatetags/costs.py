"""Sums of money for pages: exact where they are small, and never a 0 for what is not known."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from runs.engine.costs import MILLION, Cost

register = template.Library()


@register.filter
def usd(micro: int | None) -> str:
    """Micro-dollars as dollars: two places from one dollar on, below it as many as there are; a dash for None."""
    if micro is None:
        return "–"
    if abs(micro) >= MILLION:
        return f"${micro / MILLION:,.2f}"
    whole = f"{micro / MILLION:.6f}".rstrip("0")
    return f"${whole}{'0' * max(0, 2 - len(whole.partition('.')[2]))}"


def plain(cost: Cost) -> str:
    """As `money`, as bare text for a drawing."""
    return str(_("cost unknown")) if cost.micro is None else f"{'≥ ' if cost.estimate else ''}{usd(cost.micro)}"


@register.filter
def money(cost: Cost | None) -> SafeString | str:
    """A cost in words: the sum, "≥" and the sum where more may come, unknown, or a dash where nothing was asked."""
    if cost is None:
        return "–"
    if cost.micro is None:
        return _("unknown")
    exact = _("{sum} US dollars").format(sum=f"{cost.micro / MILLION:.6f}")
    if not cost.estimate:
        return format_html('<span title="{}">{}</span>', exact, usd(cost.micro))
    told = _("at least {sum}: an answer was cut, or is under way; more may be billed").format(sum=exact)
    return format_html('<span title="{}">≥ {}</span>', told, usd(cost.micro))
