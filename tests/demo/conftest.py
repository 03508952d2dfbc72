"""A real service in a real process on a free port, and the real tools against it."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from demo import TOOLS
from runs.tools.base import Context, Outcome

ROOT = Path(__file__).parents[2]


class Service:
    """One process of the service on one folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.place = folder / "demo-service.json"
        self.web = httpx2.Client(trust_env=False, timeout=10, limits=httpx2.Limits(max_keepalive_connections=0))
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "demo.service", "--data", str(self.folder), *self.options]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                told = json.loads(self.place.read_text())
                if told["pid"] == self.process.pid:
                    self.url = told["url"]
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.01)
        raise RuntimeError("the demo service did not start")

    def end(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(5)

    def http(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        sent = {"X-Customer": "C-7"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.web.request(method, self.url + path, json=body, headers=sent)

    def arm(self, kind: str, **fields: Any) -> None:
        assert self.http("PUT", "/admin/faults", {"kind": kind, **fields}).status_code == 200

    def effects(self, query: str = "") -> int:
        return int(self.http("GET", f"/ledger.json?{query}").json()["total"])


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    yield service
    service.end(signal.SIGKILL)
    service.web.close()


@pytest.fixture
def service(shared: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The shared process, back on its first day."""
    shared.web.post(shared.url + "/admin/faults", data={"do": "start_over"})
    monkeypatch.setenv("DEMO_SERVICE_URL", shared.url)
    return shared


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Service]]:
    """Start a service of the test's own, found by its folder as workers find it."""
    started: list[Service] = []

    def start(*options: str) -> Service:
        started.append(Service(tmp_path, *options))
        monkeypatch.delenv("DEMO_SERVICE_URL", raising=False)
        monkeypatch.setenv("AGENTOPS_VAR", str(tmp_path))
        return started[-1]

    yield start
    for service in started:
        service.web.close()
        if service.process.poll() is None:
            os.kill(service.process.pid, signal.SIGKILL)
            service.process.wait()


Use = Callable[..., Outcome]


@pytest.fixture
def use() -> Use:
    """Call a tool as the host does: checked arguments, a key, facts, a deadline."""
    tools = {tool.name: tool for tool in TOOLS}

    def run(name: str, /, *, key: str = "", facts: Any = None, seconds: float = 5.0, **args: Any) -> Outcome:
        if name == "refund_order":
            args = {"order_id": "O-1042", "amount": "80.00", "currency": "EUR", "reason": "Broken lamp"} | args
        end = time.monotonic() + seconds
        context = Context(
            key=key or uuid.uuid4().hex,
            facts={"customer": "C-7"} if facts is None else facts,
            seconds_left=lambda: end - time.monotonic(),
        )
        return tools[name].run(context, **json.loads(tools[name].spec.check(json.dumps(args))))

    return run
