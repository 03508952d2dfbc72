"""The Celery application: it carries hints ("look at run N"); the database holds the work."""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from typing import Any

import django
from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import celeryd_init, setup_logging, worker_ready, worker_shutdown
from kombu.transport import TRANSPORT_ALIASES

from agentops.start import settings_or_exit

settings_or_exit()
TRANSPORT_ALIASES["filesystem"] = "agentops.broker:Transport"
app = Celery("agentops")
app.set_default()  # else a thread that publishes would find a made-up app with another broker
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["runs"])


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Being connected keeps Celery away from the root logger, which settings.LOGGING owns."""
    logging.captureWarnings(True)  # one line each, like everything else


@celeryd_init.connect
def refuse_forgetful_database(**_: Any) -> None:
    """A worker starts only where "committed" means "survives a power cut" (invariant 2), and looks for a restore."""
    warnings.filterwarnings("ignore", category=SecurityWarning)  # about root and pickle; we accept JSON alone
    django.setup()
    from runs.audit.witness import look_at_start
    from runs.checks import durability_fault

    if fault := durability_fault():
        sys.exit(f"agentops: {fault}")
    look_at_start()


@worker_ready.connect
def start_heart(**_: Any) -> None:
    """From now on this worker is seen by /healthz."""
    from runs.health import start_heart

    start_heart("worker")


@worker_ready.connect
def settle_down(**_: Any) -> None:
    """What was loaded stays loaded: a collection that looks through it holds up every run of this worker for 40 ms."""
    gc.collect()
    gc.freeze()


@worker_shutdown.connect
def stop_heart(**_: Any) -> None:
    """A worker that leaves by itself is gone at once, not after the stale time."""
    from runs.health import stop_hearts

    stop_hearts()
