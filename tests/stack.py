"""The real thing for story tests: `manage.py up` as its own process tree, with its own data folder, port and database.

stack.start(); person = stack.signed_in("operator"); person.post("/runs/new/", {...}); stack.kill("worker")
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import psycopg
from psycopg.rows import dict_row
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "a-password-of-the-tests"
TOOLS = ",".join(name for name in ("demo", "tests.demo_pack") if importlib.util.find_spec(name))
SHORT = {
    "AGENTOPS_LEASE": "1.5",
    "AGENTOPS_SWEEP": "0.2",
    "AGENTOPS_WAKE_AGAIN": "0.5",
    "AGENTOPS_PROBES": "0,0.3,0.6,1",
    "AGENTOPS_WATCH": "2,4",
    "AGENTOPS_CHECKPOINT": "1",
    "AGENTOPS_BEAT": "0.5",
    "AGENTOPS_STALE": "3",
}
# An installation of the developer must not leak into the tests' own.
OURS = (
    "AGENTOPS_",
    "ANTHROPIC_",
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "CHANNEL_REDIS_URL",
    "PORT",
    "DJANGO_SETTINGS_MODULE",
)
_redis_pairs = itertools.count(1)


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], Any], seconds: float = 10, what: str = "") -> Any:
    """The first true value of `condition`; a failure that says what was waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what or condition}")


def clean_environment() -> dict[str, str]:
    """This process's environment without the knobs of any installation."""
    return {key: value for key, value in os.environ.items() if not key.startswith(OURS)}


def redis_pair(number: int) -> tuple[str, str]:
    """Two empty databases of the tests' Redis: (broker, channel layer)."""
    import redis

    base = os.environ["TEST_REDIS_URL"].rstrip("/")
    urls = tuple(f"{base}/{(2 * number + part) % 16}" for part in (0, 1))
    for url in urls:
        with closing(redis.Redis.from_url(url)) as client:
            client.flushdb()
    return urls[0], urls[1]


@contextmanager
def fresh_postgres() -> Iterator[str]:
    """An empty PostgreSQL database, dropped afterwards; yields its DATABASE_URL."""
    server = os.environ["TEST_DATABASE_URL"]
    name = f"stack_{os.getpid()}_{secrets.token_hex(4)}"
    _on_server(server, f'CREATE DATABASE "{name}"')
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        _on_server(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _on_server(server: str, statement: str) -> None:
    admin = urlsplit(server)._replace(path="/postgres").geturl()
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(statement.encode())


class Person:
    """A signed-in browser without a browser: cookies, the CSRF header, sockets."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def sign_in(self, username: str, password: str) -> Person:
        """Through the real form, wherever the front page sends a stranger."""
        page = self.client.get("/", follow_redirects=True)
        answer = self.post(str(page.url), {"username": username, "password": password})
        assert answer.status_code == 302, f"{username} cannot sign in: {answer.status_code} {answer.text[:300]}"
        return self

    def cookie(self, prefix: str) -> str:
        """The value of the cookie whose name begins like this (the port is part of the name)."""
        return next((c.value or "" for c in self.client.cookies.jar if c.name.startswith(prefix)), "")

    def get(self, path: str, **options: Any) -> httpx.Response:
        """A page; redirects are followed."""
        return self.client.get(path, follow_redirects=True, **options)

    def post(self, path: str, data: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        """A form; redirects are not followed, so that a test sees the answer itself."""
        headers = {"X-CSRFToken": self.cookie("csrf"), "Origin": self.url} | options.pop("headers", {})
        return self.client.post(path, data=data, headers=headers, **options)

    def socket(self, path: str, origin: str | None = None) -> ClientConnection:
        """An open socket with this person's session; use it in `with`."""
        cookies = "; ".join(f"{c.name}={c.value}" for c in self.client.cookies.jar)
        url = self.url.replace("http", "ws", 1) + path
        return connect(url, origin=Origin(origin or self.url), additional_headers={"Cookie": cookies}, proxy=None)


class Faults:
    """The demo service's misbehaviour on demand."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def arm(self, kind: str, **fault: Any) -> None:
        """Arm one fault, for example `arm("reply_lost", path="/refunds", times=1)`."""
        httpx.put(f"{self.stack.demo}/admin/faults", json={"kind": kind, **fault}, trust_env=False).raise_for_status()

    def clear(self) -> None:
        """Clear them all."""
        httpx.delete(f"{self.stack.demo}/admin/faults", trust_env=False).raise_for_status()


class Stack:
    """One installation, from start to kill -9."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder, self.var = folder, folder / "var"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "up.log"
        self.env = clean_environment() | SHORT
        self.env |= {"AGENTOPS_VAR": str(self.var), "PORT": str(self.port), "AGENTOPS_TOOLS": TOOLS}
        self.env |= {"AGENTOPS_DEMO_PASSWORD": PASSWORD} | env
        self.up: subprocess.Popen[bytes] | None = None
        self._database: Any = None
        self.faults = Faults(self)

    # --- start, stop, kill --------------------------------------------------------------------------------------------
    def start(self, seconds: float = 60) -> Stack:
        """Start and wait for the line that says ready."""
        self._choose_servers()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            begin = log.tell()
            self.up = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        until(lambda: self._said_ready(begin), seconds, f"AgentOps is ready; log:\n{self.tail()}")
        return self

    def _choose_servers(self) -> None:
        if os.environ.get("TEST_DATABASE_URL") and "DATABASE_URL" not in self.env:
            self._database = fresh_postgres()
            self.env["DATABASE_URL"] = self._database.__enter__()
        if os.environ.get("TEST_REDIS_URL") and "CELERY_BROKER_URL" not in self.env:
            pair = redis_pair(1 + next(_redis_pairs) % 7)  # pair 0 is the in-process tests'
            self.env["CELERY_BROKER_URL"], self.env["CHANNEL_REDIS_URL"] = pair

    def _said_ready(self, begin: int) -> bool:
        assert self.up is not None
        if self.up.poll() is not None:
            raise AssertionError(f"up ended with {self.up.returncode}:\n{self.tail()}")
        return b"AgentOps is ready at" in self.log.read_bytes()[begin:]

    def stop(self, number: int = signal.SIGTERM, seconds: float = 10) -> int:
        """Ask to end, as Ctrl-C does with SIGINT; the exit code."""
        if self.up is None:
            return 0
        self.up.send_signal(number)
        code = self.up.wait(seconds)
        self.up = None
        return code

    def close(self) -> None:
        """End it, whatever its state, and drop what was made for it."""
        if self.up is not None:
            with suppress(subprocess.TimeoutExpired, ProcessLookupError):
                self.stop()
            self.kill_all()
        if self._database is not None:
            self._database.__exit__(None, None, None)

    def processes(self) -> dict[str, int]:
        """Name -> pid of the children: web, worker, sweeper, and one for each tool service (demo)."""
        with suppress(FileNotFoundError):
            return dict(json.loads((self.var / "processes.json").read_text()))
        return {}

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Kill one child by its pid; the supervisor starts it again. Returns the pid."""
        pid = self.processes()[name]
        os.kill(pid, number)
        return pid

    def reborn(self, name: str, old: int, seconds: float = 15) -> int:
        """Wait until a killed child runs under another pid."""
        return int(
            until(lambda: (p := self.processes().get(name)) and p != old and p, seconds, f"{name} started again")
        )

    def kill_all(self) -> None:
        """kill -9 of the supervisor and of every child at once."""
        pids = list(self.processes().values())
        if self.up is not None:
            self.up.kill()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.up is not None:
            self.up.wait()
            self.up = None

    def restart(self, kill: bool = False) -> Stack:
        """Stop (or kill -9) everything and start it again on the same data."""
        if kill:
            self.kill_all()
        else:
            self.stop()
        return self.start()

    # --- people and commands ------------------------------------------------------------------------------------------
    def signed_in(self, username: str) -> Person:
        """A new session of one of the demo people."""
        return Person(self.url).sign_in(username, PASSWORD)

    def healthz(self) -> httpx.Response:
        """The answer of /healthz."""
        return httpx.get(f"{self.url}/healthz", timeout=10, trust_env=False)

    def manage(self, *args: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        """A management command in this installation's environment."""
        command = [sys.executable, "manage.py", *args]
        done = subprocess.run(
            command, cwd=ROOT, env=self.env | env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
        )
        if check and done.returncode:
            raise AssertionError(
                f"manage.py {' '.join(args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done

    # --- what really happened -----------------------------------------------------------------------------------------
    def sql(self, query: str, params: tuple[Any, ...] = ()) -> list[dict[str, Any]]:
        """Straight at the database, past the application; placeholders are `%s` on both."""
        url = self.env.get("DATABASE_URL", "")
        if url.startswith("postgres"):
            with psycopg.connect(url, autocommit=True, row_factory=dict_row) as pg:
                cursor = pg.execute(query.encode(), params or None)
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.var / "agentops.sqlite3", timeout=20, isolation_level=None)) as lite:
            lite.row_factory = sqlite3.Row
            return [dict(row) for row in lite.execute(query.replace("%s", "?"), params)]

    @property
    def demo(self) -> str:
        """The address of the demo service."""
        return str(json.loads((self.var / "demo-service.json").read_text())["url"])

    def ledger(self, **filters: str) -> dict[str, Any]:
        """Real effects, by `key`, `order` or `kind`: {"total", "by_key", "by_kind", "rows"}."""
        answer = httpx.get(f"{self.demo}/ledger.json", params=filters, trust_env=False)
        return dict(answer.raise_for_status().json())

    def tail(self, lines: int = 40) -> str:
        """The end of the log, for failures."""
        with suppress(FileNotFoundError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""
