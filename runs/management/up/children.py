"""The processes of one installation, as commands."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from django.conf import settings

MANAGE = str(settings.BASE_DIR / "manage.py")


def host() -> str:
    """Where the web process listens: loopback always; TLS and the outside are a proxy's work."""
    return "::1" if settings.HOST == "::1" else "127.0.0.1"


def commands() -> dict[str, list[str]]:
    """Name -> command, in the order of starting."""
    python = sys.executable
    web = [python, "-m", "uvicorn", "agentops.asgi:application", "--host", host(), "--port", str(settings.PORT)]
    web += ["--log-level", "warning", "--no-access-log", "--no-server-header", "--lifespan", "on"]
    web += ["--ws-max-size", "65536", "--timeout-graceful-shutdown", "3"]
    threads = str(settings.AGENTOPS_WORKER_THREADS)
    worker = [python, "-m", "celery", "--quiet", "-A", "agentops", "worker", "-P", "threads", "-c", threads]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    services = {name: [python, "-m", f"{name}.service", "--data", str(settings.VAR)] for name in tool_services()}
    return services | {"web": web, "worker": worker, "sweeper": [python, MANAGE, "sweep"]}


def tool_services() -> list[str]:
    """Tool packages that bring a service of their own (a runnable `<package>.service`)."""
    tools: tuple[str, ...] = settings.AGENTOPS_TOOLS
    return [name for name in tools if _runnable(f"{name}.service")]


def _runnable(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # tools that are one module, not a package, bring no service
        return False
    if found is None:
        return False
    return not found.submodule_search_locations or importlib.util.find_spec(f"{module}.__main__") is not None


def announcements() -> list[Path]:
    """The file by which each such service says that it listens, and where."""
    return [settings.VAR / f"{name}-service.json" for name in tool_services()]
