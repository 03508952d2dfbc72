"""All that runs in production, on one machine: 2 web, 2 workers, 2 sweepers, PostgreSQL, Redis, the order service.

Each kind of process reaches its servers through links that can be cut. Servers are started, killed and restarted here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psycopg
from psycopg.rows import dict_row

from tests.chaos.proxy import Link
from tests.stack import PASSWORD, ROOT, SHORT, Person, clean_environment, free_port, until

KNOBS = {
    "AGENTOPS_LEASE": "2", "AGENTOPS_SWEEP": "0.3", "AGENTOPS_WAKE_AGAIN": "0.6", "AGENTOPS_PROBES": "0,0.3,0.6,1",
    "AGENTOPS_WATCH": "2,12", "AGENTOPS_CHECKPOINT": "2",
}  # fmt: skip
LINKS = (
    "worker-db", "web-db", "sweeper-db", "worker-redis", "web-redis", "sweeper-redis", "worker-service",
)  # fmt: skip
OURS = ("web-1", "web-2", "worker-1", "worker-2", "sweeper-1", "sweeper-2")


class Yard:
    """All processes of one installation and the links between them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, dict[str, subprocess.Popen[bytes]]()
        folder.chmod(0o755)
        self.ports = {name: free_port() for name in ("db", "redis", "service", "web-1", "web-2")}
        self.links: dict[str, Link] = {}
        self.begun: dict[str, int] = {}
        self.hits = folder / "hits"

    # --- servers ------------------------------------------------------------------------------------------------------
    def start(self) -> Yard:
        """Start everything, schema and people included."""
        self._make_database()
        self.database_on()
        self.redis_on()
        self.service_on()
        self.links = {name: Link(self.ports[name.partition("-")[2]]) for name in LINKS}
        for command in (["migrate", "--verbosity", "0"], ["seed"]):
            done = subprocess.run(
                [sys.executable, "manage.py", *command], cwd=ROOT, env=self.env("web"), capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        return self.whole()

    def whole(self) -> Yard:
        """Everything runs and every link is healed, also after a cell that failed in the middle."""
        for link in self.links.values():
            link.heal()
        for name in [name for name in self.processes if name not in (*OURS, "redis", "service")]:
            self.off(name)
        dead = [name for name in OURS if not self.alive(name)]
        for name in dead:
            self.on(name)
        if dead:
            until(lambda: all(self.answers(web) for web in ("web-1", "web-2")), 60, "both web processes answer")
            self.workers_ready("worker-1", "worker-2")
        return self

    def _make_database(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        assert found, "PostgreSQL is missing: apt-get install postgresql"
        self.bin = found[-1]
        (self.folder / "pg").mkdir()
        if os.geteuid() == 0:
            shutil.chown(self.folder / "pg", "postgres")
        self._postgres("initdb", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8")

    def _postgres(self, program: str, *arguments: str) -> None:
        prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*prefix, str(self.bin / program), "-D", str(self.folder / "pg" / "data"), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
        assert done.returncode == 0 or program == "pg_ctl", done.stdout[-1500:]

    def database_on(self) -> None:
        """Start PostgreSQL; what was committed is there again."""
        options = f"-p {self.ports['db']} -c listen_addresses=127.0.0.1 -k {self.folder / 'pg'} -c max_connections=200"
        options += " -c track_commit_timestamp=on"  # the oracle orders commits by the server's own clock
        self._postgres("pg_ctl", "-w", "-t", "60", "-l", str(self.folder / "pg" / "log"), "-o", options, "start")

    def database_off(self) -> None:
        """Kill it without a check point, as a power cut would: commits in flight are ambiguous."""
        self._postgres("pg_ctl", "-m", "immediate", "stop")
        (self.folder / "pg" / "data" / "postgresql.auto.conf").write_text("")

    def withhold_commits(self) -> None:
        """From now on a commit is durable and not confirmed: it waits for a standby that does not exist."""
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        self.sql("SELECT pg_reload_conf()")

    def waiting(self, kind: str) -> int:
        """How many connections of the product wait in a statement: kind SyncRep (committed) or relation (a lock)."""
        sql = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = %s AND pid <> pg_backend_pid()"
        return int(self.sql(sql, kind)[0]["n"])

    def redis_on(self) -> None:
        """Start Redis, empty: it keeps nothing."""
        port = str(self.ports["redis"])
        options = ["--port", port, "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", "--appendonly", "no"]
        program = shutil.which("redis-server")
        assert program, "Redis is missing: apt-get install redis-server"
        self._run("redis", [program, *options], os.environ.copy())

    def service_on(self) -> None:
        """Start the order service; its ledger is the oracle."""
        data = str(self.folder / "service")
        command = [sys.executable, "-m", "demo.service", "--data", data, "--port", str(self.ports["service"])]
        self._run("service", command, clean_environment())
        until(lambda: self._service_answers(), 20, "the order service answers")

    def _service_answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self.service("GET", "/healthz").status_code == 200
        return False

    def service(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Speak to the order service past the links."""
        url = f"http://127.0.0.1:{self.ports['service']}{path}"
        return httpx.request(method, url, timeout=10, trust_env=False, **options)

    def arm(self, kind: str, paths: tuple[str, ...], times: int = 1) -> None:
        """Let the next effects under these paths meet a fault of the service."""
        for path in paths:
            fault = {"kind": kind, "path": path, "method": "POST", "times": times, "seconds": 1}
            self.service("PUT", "/admin/faults", json=fault).raise_for_status()

    def armed(self) -> int:
        """How many of these have not been met yet."""
        headers = {"Accept": "application/json"}
        return len(self.service("GET", "/admin/faults", headers=headers).json()["faults"])

    # --- our processes ------------------------------------------------------------------------------------------------
    def env(self, kind: str, fault: str = "") -> dict[str, str]:
        """What a process of a kind is told."""

        def link(server: str) -> int:
            found = self.links.get(f"{kind}-{server}")
            return found.port if found else self.ports[server]

        redis = f"redis://127.0.0.1:{link('redis')}"
        env = clean_environment() | SHORT | KNOBS | {"AGENTOPS_DEMO_PASSWORD": PASSWORD}
        env |= {"AGENTOPS_VAR": str(self.folder / "var"), "AGENTOPS_TOOLS": "demo,tests.demo_pack"}
        env |= {"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{link('db')}/postgres"}
        env |= {"CELERY_BROKER_URL": f"{redis}/0", "CHANNEL_REDIS_URL": f"{redis}/1", "PORT": str(self.ports["web-1"])}
        env |= {"DEMO_SERVICE_URL": f"http://127.0.0.1:{link('service')}"}
        return env | ({"AGENTOPS_FAULT": fault, "AGENTOPS_FAULT_LOG": str(self.hits)} if fault else {})

    def on(self, name: str, fault: str = "") -> None:
        """Start one of our processes, with a fault armed or without."""
        kind = name.partition("-")[0]
        env = self.env(kind, fault)
        if kind == "web":
            env["PORT"] = str(self.ports[name])
            command = ["-m", "uvicorn", "agentops.asgi:application", "--host", "127.0.0.1", "--port", env["PORT"]]
            command += ["--log-level", "warning", "--no-access-log", "--lifespan", "on"]
        elif kind == "worker":
            command = ["-m", "celery", "--quiet", "-A", "agentops", "worker", "-P", "threads", "-c", "6"]
            command += ["--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"]
            command += ["-n", f"{name}-{time.time_ns()}@x"]
        else:
            command = ["manage.py", "sweep"]
        self._run(name, [sys.executable, *command], env)

    def _run(self, name: str, command: list[str], env: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.begun[name] = log.tell()
            self.processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def off(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill one of the processes and what it started."""
        process = self.processes.pop(name, None)
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
                os.killpg(process.pid, signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)

    def alive(self, name: str) -> bool:
        """Whether it runs, or stands still."""
        return name in self.processes and self.processes[name].poll() is None

    def signal(self, name: str, number: int) -> None:
        """SIGSTOP, SIGCONT."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, number)

    def workers_ready(self, *names: str) -> None:
        """Wait until these workers take messages, or have died of an armed fault."""
        for name in names:
            until(lambda name=name: " ready." in self._said(name) or not self.alive(name), 60, f"{name} is ready")

    def _said(self, name: str) -> str:
        """What it logged since its last start."""
        with (self.folder / f"{name}.log").open(errors="replace") as log:
            log.seek(self.begun[name])
            return log.read()

    def tail(self, name: str) -> str:
        """The end of its log, for failures."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def answers(self, web: str) -> bool:
        """Whether it serves a page."""
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url(web)}/sign-in", timeout=5, trust_env=False).status_code == 200
        return False

    def url(self, web: str = "web-1") -> str:
        """Where a web process listens."""
        return f"http://127.0.0.1:{self.ports[web]}"

    def signed_in(self, name: str, web: str = "web-1") -> Person:
        """A browser."""
        return Person(self.url(web)).sign_in(name, PASSWORD)

    def sql(self, query: str, *params: Any) -> list[dict[str, Any]]:
        """Look into the database past the links. Raises `psycopg.OperationalError` while it is away."""
        with self.connection() as connection:
            cursor = connection.execute(query.encode(), params or None)
            return cursor.fetchall() if cursor.description else []

    def connection(self) -> psycopg.Connection[dict[str, Any]]:
        """One to the database past the links."""
        url = f"postgresql://postgres@127.0.0.1:{self.ports['db']}/postgres"
        return psycopg.connect(url, autocommit=True, row_factory=dict_row, connect_timeout=3)

    def ledger(self) -> list[dict[str, Any]]:
        """What really happened."""
        return list(self.service("GET", "/ledger.json").json()["rows"])

    def fired(self) -> int:
        """How many armed faults have fired so far."""
        return len(self.hits.read_text().splitlines()) if self.hits.exists() else 0

    def versions(self) -> dict[str, str]:
        """Of what was under test."""
        import platform

        import celery
        import django

        program = shutil.which("redis-server") or ""
        redis = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        postgres = self.sql("SHOW server_version")[0]["server_version"]
        return {
            "PostgreSQL": postgres.split()[0], "Redis": redis.partition("v=")[2].split()[0],
            "Python": platform.python_version(), "Django": django.__version__, "Celery": celery.__version__,
        }  # fmt: skip

    def close(self) -> None:
        """Nothing is left, whatever happened."""
        for name in list(self.processes):
            self.off(name)
        with contextlib.suppress(AssertionError):
            self.database_off()
        for link in self.links.values():
            link.close()


@contextlib.contextmanager
def yard(folder: Path) -> Iterator[Yard]:
    """Everything, for as long as the block lasts."""
    made = Yard(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # whoever ends us early still gets everything put away
    try:
        yield made.start()
    finally:
        made.close()


def parsed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events with their bodies read."""
    return [row | {"body": json.loads(row["body"])} for row in rows]
