"""What /healthz says, for people."""

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from runs import health
from runs.views.access import page, show


@page()
def health_page(request: Any) -> HttpResponse:
    """What /healthz says, for people."""
    found = health.snapshot()
    parts = [(name, part) for name, part in found.items() if name != "ok"]
    heading = _("Everything is alive") if found["ok"] else _("Something needs a look")
    return show(request, "health/page.html", {"ok": found["ok"], "parts": parts, "heading": heading})
