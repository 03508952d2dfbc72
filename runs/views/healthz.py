"""Is this installation working? For supervisors, balancers and people, without a login."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from runs.health import serves, snapshot


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when web, database, worker and sweeper are alive, else 503 naming what is not; `record` is told beside."""
    answer = snapshot()
    return JsonResponse(answer, status=200 if serves(answer) else 503)
