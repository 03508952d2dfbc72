"""Routes: all pages are `runs`'; the health answer stands beside them because it needs no login."""

from __future__ import annotations

from django.urls import include, path

from runs.views.healthz import healthz

urlpatterns = [path("healthz", healthz, name="healthz"), path("", include("runs.urls"))]
handler400 = "runs.views.errors.bad_request"
handler403 = "runs.views.errors.forbidden"
handler404 = "runs.views.errors.not_found"
handler500 = "runs.views.errors.server_error"
