"""Start everything on this machine: `make up`."""

from __future__ import annotations

import http.client
import json
import sys
import time
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, call_command

from runs.audit import safe_mode
from runs.audit.witness import look_at_start
from runs.management.up import children, preflight
from runs.management.up.static import collect
from runs.management.up.supervisor import Supervisor

STARTED = time.time()  # an older announcement is of a service that has ended


class Command(BaseCommand):
    """Check, migrate, seed, then supervise web, worker, sweeper and the tools' services until Ctrl-C."""

    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse with one line, or run until asked to stop."""
        var = settings.VAR
        try:
            lock = preflight.lock_data_folder(var)
            preflight.port_is_free(children.host(), settings.PORT)
            preflight.redis_answers("CELERY_BROKER_URL", settings.CELERY_BROKER_URL)
            preflight.redis_answers("CHANNEL_REDIS_URL", settings.CHANNEL_REDIS_URL)
            preflight.broker_answers(settings.CELERY_BROKER_URL)
            preflight.database_answers()
            preflight.migrate()
            preflight.clear_leftovers(var)
            collect()
            look_at_start()
        except preflight.Refusal as refusal:
            sys.exit(f"agentops: {refusal}")
        with lock:
            call_command("seed")
            self.show_people()
            self.warn()
            code = Supervisor(children.commands(), settings.BASE_DIR, var / "processes.json", not_alive).run(
                f"AgentOps is ready at {settings.AGENTOPS_ORIGIN}"
            )
        sys.exit(code)

    def warn(self) -> None:
        """A restored database is said where somebody looks first."""
        if (found := safe_mode.in_force()) is not None:
            self.stdout.write(f"SAFE MODE: {found.why}. {safe_mode.WHAT}")
            self.stdout.write("  Look at the page Safe mode, or run `manage.py safe_mode`.")
            self.stdout.flush()

    def show_people(self) -> None:
        """Demo people can only be used by who sees the terminal (or may read the data folder)."""
        path = settings.VAR / "demo-passwords.json"
        if not path.exists():
            return
        self.stdout.write(f"Demo people (passwords kept in {path}):")
        for name, password in json.loads(path.read_text()).items():
            self.stdout.write(f"  {name:<12} {password}")
        self.stdout.flush()


def not_alive() -> str | None:
    """What is missing before the installation may be called ready; None when nothing is."""
    silent = [path.stem for path in children.announcements() if not path.exists() or path.stat().st_mtime < STARTED]
    if silent:
        return f"{silent[0]} has not announced itself"
    asked = http.client.HTTPConnection(children.host(), settings.PORT, timeout=2)
    try:
        asked.request("GET", "/healthz", headers={"Host": settings.HOST})
        answer = asked.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        return "the web process does not answer yet"
    finally:
        asked.close()
    if answer.status == 200:
        return None
    try:
        return "; ".join(name for name, part in json.loads(body).items() if isinstance(part, dict) and not part["ok"])
    except ValueError:
        return f"/healthz answers {answer.status}"
