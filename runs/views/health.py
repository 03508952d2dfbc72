"""How the installation is, for people: what each part is for and what to do when it is bad."""

from typing import Any

from django.http import HttpResponse

from runs.queries.health import health
from runs.views.access import page, show


@page()
def health_page(request: Any) -> HttpResponse:
    """All parts; /healthz is the same for machines, in short."""
    return show(request, "health/page.html", {"health": health()})
