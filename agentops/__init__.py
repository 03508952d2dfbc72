"""Wiring only: settings, routes, the ASGI and Celery applications."""
