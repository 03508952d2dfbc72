"""Socket routes."""

from __future__ import annotations

from django.urls import path

from runs.consumers import InboxWatcher, RunsWatcher, RunWatcher, ShellWatcher

websocket_urlpatterns = [
    path("ws/runs/<int:run_id>/", RunWatcher.as_asgi()),
    path("ws/runs/", RunsWatcher.as_asgi()),
    path("ws/inbox/", InboxWatcher.as_asgi()),
    path("ws/shell/", ShellWatcher.as_asgi()),
]
