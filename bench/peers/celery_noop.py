"""A Celery no-op: `python -m bench.peers.celery_noop BROKER BACKEND|none COUNT`, prints a list of milliseconds.

With a result backend: `delay()` and `get()`, a worker of two processes. Without: from `delay()` to the task's body. A
broker ``filesystem:FOLDER`` is kombu's file transport with everything as it comes, also its poll of one second, which a
task may meet at any of its moments.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from celery import Celery

BROKER, BACKEND, COUNT = (os.environ.get(f"NOOP_{name}", "") for name in ("BROKER", "BACKEND", "COUNT"))
WARM = 2  # the first ones connect


def application(broker: str, backend: str) -> Celery:
    """The app of both sides."""
    app = Celery("noop", backend=None if backend == "none" else backend)
    app.conf.broker_connection_retry_on_startup = True
    if broker.startswith("filesystem:"):
        folder = Path(broker.partition(":")[2])
        for name in ("queue", "done", "control"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        app.conf.broker_url = "filesystem://"
        app.conf.broker_transport_options = {
            "data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue"),
            "processed_folder": str(folder / "done"), "control_folder": str(folder / "control"),
        }  # fmt: skip
    else:
        app.conf.broker_url = broker
    return app


app = application(BROKER or "memory://", BACKEND or "none")


@app.task(name="noop")
def noop(mark: str = "") -> int:
    """Nothing; says when it began."""
    now = time.time_ns()
    if mark:
        Path(mark).write_text(str(now))
    return now


def main() -> None:
    """Start a worker, measure, stop it."""
    broker, backend, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    env = os.environ | {"NOOP_BROKER": broker, "NOOP_BACKEND": backend, "NOOP_COUNT": str(count)}
    if not BROKER:
        sys.exit(subprocess.run([sys.executable, "-m", "bench.peers.celery_noop", *sys.argv[1:]], env=env).returncode)
    command = [sys.executable, "-m", "celery", "-A", "bench.peers.celery_noop", "worker", "-P", "prefork", "-c", "2"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    worker = subprocess.Popen([*command, "--without-gossip", "--without-mingle", "-l", "ERROR"], env=env, **quiet)  # type: ignore[call-overload]
    try:
        taken = [one(backend, number) for number in range(count + WARM)][WARM:]
    finally:
        worker.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(10)
        worker.kill()
    print(json.dumps(taken))


def one(backend: str, number: int) -> float:
    """One task, in milliseconds."""
    if backend != "none":
        began = time.perf_counter()
        noop.delay().get(timeout=60)
        return (time.perf_counter() - began) * 1000
    time.sleep(random.random())  # else each would be sent just after a poll
    mark = Path(os.environ["NOOP_BROKER"].partition(":")[2]) / f"mark-{number}"
    began_at = time.time_ns()
    noop.delay(str(mark))
    end = time.monotonic() + 30
    while not (mark.exists() and mark.read_text()):
        if time.monotonic() > end:
            sys.exit("the no-op never ran")
        time.sleep(0.001)
    return (int(mark.read_text()) - began_at) / 1e6


if __name__ == "__main__":
    main()
