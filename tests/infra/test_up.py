"""One command starts everything, keeps it running, ends it, and says in one line why it cannot."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.stack import PASSWORD, ROOT, Stack, until

CHILDREN = {"web", "worker", "sweeper", "demo"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """This module's own installation, which its tests may stop and kill."""
    installation = Stack(tmp_path_factory.mktemp("own")).start()
    yield installation
    installation.close()


@pytest.fixture
def running(own: Stack) -> Stack:
    """It runs."""
    return own if own.up else own.start()


@pytest.fixture
def made(own: Stack) -> Stack:
    """It does not run; its data folder and database exist."""
    own.stop()
    return own


@contextmanager
def damaged(stack: Stack, damage: str, repair: str) -> Iterator[None]:
    """A database with this damage, repaired afterwards."""
    stack.sql(damage)
    yield
    stack.sql(repair)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def refusal(stack: Stack, **env: str) -> str:
    """The one line with which `up` refuses to start."""
    done = stack.manage("up", check=False, **env)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("agentops: "), done.stderr
    assert "hunter2" not in lines[0]
    return lines[0]


# --- running ----------------------------------------------------------------------------------------------------------
def test_everything_runs_and_health_says_so(stack: Stack) -> None:
    assert set(stack.processes()) == CHILDREN
    answer = stack.healthz()
    assert answer.status_code == 200
    assert {name for name, part in answer.json().items() if part is True or part["ok"]} >= {"web", "worker", "sweeper"}
    assert PASSWORD in stack.log.read_text()


def test_a_killed_process_is_started_again_and_the_others_stay(stack: Stack) -> None:
    before = stack.processes()
    stack.kill("worker")
    stack.reborn("worker", before["worker"])
    after = stack.processes()
    assert {name for name in CHILDREN if before[name] != after[name]} == {"worker"}


def test_a_second_start_on_the_same_data_is_refused(stack: Stack) -> None:
    assert f"already runs on the data folder {stack.var}" in refusal(stack)


def test_every_process_publishes_to_our_broker(stack: Stack) -> None:
    """From any thread: Celery would otherwise make up an application with a broker of its own."""
    code = "from threading import Thread; from celery import current_app as app; "
    code += "Thread(target=lambda: print('broker', app.conf.broker_url)).start()"
    broker = stack.env.get("CELERY_BROKER_URL", "filesystem://localhost")
    assert f"broker {broker}" in stack.manage("shell", "-c", code).stdout


def test_static_files_have_hashed_names_that_browsers_keep(stack: Stack) -> None:
    manifest = (stack.var / "static" / "staticfiles.json").read_text()
    name = manifest.partition('"admin/css/base.css": "')[2].partition('"')[0]
    answer = httpx2.get(f"{stack.url}/static/{name}", trust_env=False)
    assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]


def test_every_answer_carries_the_security_headers(stack: Stack) -> None:
    headers = stack.healthz().headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


def test_health_names_what_is_not_alive_and_what_to_do(running: Stack) -> None:
    sweeper = running.processes()["sweeper"]
    os.kill(sweeper, signal.SIGSTOP)
    answer = until(lambda: (a := running.healthz()).status_code == 503 and a.json(), 10, "503")
    os.kill(sweeper, signal.SIGCONT)
    assert [name for name, part in answer.items() if isinstance(part, dict) and not part["ok"]] == ["sweeper"]
    assert "manage.py sweep" in answer["sweeper"]["what_to_do"]


# --- ending and starting again ----------------------------------------------------------------------------------------
def test_children_die_with_a_killed_supervisor(running: Stack) -> None:
    pids = running.processes().values()
    assert running.up is not None
    running.up.kill()
    running.up.wait()
    running.up = None
    until(lambda: not any(alive(pid) for pid in pids), 3, "all children gone")


def test_a_start_after_kill_9_of_everything_finds_no_trace_of_the_dead(running: Stack) -> None:
    old = set(running.processes().values())
    running.restart(kill=True)
    assert running.healthz().status_code == 200
    assert old.isdisjoint(running.processes().values())
    rows = running.sql("SELECT ident FROM runs_heartbeat")
    assert old.isdisjoint(int(row["ident"].rpartition(":")[2]) for row in rows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_it_ends_in_time_and_leaves_nobody(running: Stack, number: int) -> None:
    pids = running.processes().values()
    begin = time.monotonic()
    assert running.stop(number) == 0
    assert time.monotonic() - begin < 10
    assert not any(alive(pid) for pid in pids)


def test_demo_passwords_are_private_and_printed_at_each_start(own: Stack) -> None:
    assert (own.var / "demo-passwords.json").stat().st_mode & 0o777 == 0o600
    log = own.log.read_text()
    assert log.count("Demo people") == log.count("AgentOps is ready") > 1
    assert PASSWORD in log


# --- refusing ---------------------------------------------------------------------------------------------------------
def test_a_busy_port(made: Stack) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", made.port))
        other.listen()
        line = refusal(made)
    assert f"port {made.port}" in line and "PORT=" in line


def test_a_data_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    command, env = [sys.executable, "manage.py", "up"], {"AGENTOPS_VAR": str(tmp_path / "closed" / "var")}
    if os.geteuid() == 0:  # root may write everywhere; the copy is for nobody, who may not look into /root
        env, command = as_nobody(tmp_path, env)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "AGENTOPS_VAR" in done.stderr and "right to write" in done.stderr


def as_nobody(tmp_path: Path, env: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    python = "/usr/bin/python3"
    if not Path(python).exists() or not shutil.which("setpriv"):
        pytest.skip("needs a Python that nobody can start")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    user = pwd.getpwnam("nobody")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return env | {"PYTHONPATH": packages}, [*drop, python, "-B", "manage.py", "up"]


def test_a_database_newer_than_the_code(made: Stack) -> None:
    row = "('runs', '9999_future', '2026-01-01')"
    undo = "DELETE FROM django_migrations WHERE name = '9999_future'"
    with damaged(made, f"INSERT INTO django_migrations (app, name, applied) VALUES {row}", undo):
        line = refusal(made)
    assert "newer than this code" in line and "runs.9999_future" in line


def test_a_half_migrated_database(made: Stack) -> None:
    damage = "UPDATE django_migrations SET app = 'gone' WHERE app = 'runs'"
    with damaged(made, damage, "UPDATE django_migrations SET app = 'runs' WHERE app = 'gone'"):
        assert "half-migrated" in refusal(made)


def test_a_history_with_a_hole(made: Stack) -> None:
    damage = "UPDATE django_migrations SET app = 'gone' WHERE app = 'contenttypes' AND name = '0001_initial'"
    with damaged(made, damage, "UPDATE django_migrations SET app = 'contenttypes' WHERE app = 'gone'"):
        assert "half-migrated" in refusal(made)


def test_a_file_that_is_no_database(made: Stack, tmp_path: Path) -> None:
    wrong = tmp_path / "x.sqlite3"
    wrong.write_bytes(b"not a database, whatever its name says" * 100)
    assert "cannot open the database" in refusal(made, DATABASE_URL=f"sqlite:///{wrong}")


WRONG_DATABASES: list[tuple[Callable[[int], str], str]] = [
    (lambda port: "nonsense", "DATABASE_URL is wrong"),
    (lambda port: f"postgresql://u:hunter2@127.0.0.1:{port}/x", "start the server or correct host and port"),
    (lambda port: "sqlite:////dev/null/x.sqlite3", "check the path"),
]


@pytest.mark.parametrize(("url", "says"), WRONG_DATABASES)
def test_a_wrong_database_url(tmp_path: Path, closed_port: int, url: Callable[[int], str], says: str) -> None:
    stack = Stack(tmp_path)
    assert says in refusal(stack, DATABASE_URL=url(closed_port))


if os.environ.get("TEST_DATABASE_URL"):  # the server that .ci/run starts; without one there is nothing to refuse

    def test_a_postgres_that_refuses_us(tmp_path: Path) -> None:
        stack, base = Stack(tmp_path), os.environ["TEST_DATABASE_URL"].rpartition("/")[0]
        assert "create the database" in refusal(stack, DATABASE_URL=f"{base}/no_such_database")
        place = base.rpartition("@")[2]
        assert "correct user and password" in refusal(stack, DATABASE_URL=f"postgresql://who:hunter2@{place}/postgres")
        forgetful = f"{base}/postgres?options=-c%20synchronous_commit%3Doff"
        assert "synchronous_commit = off" in refusal(stack, DATABASE_URL=forgetful)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens, held so that nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("variable", ["CELERY_BROKER_URL", "CHANNEL_REDIS_URL"])
def test_a_configured_but_absent_redis(tmp_path: Path, closed_port: int, variable: str) -> None:
    stack = Stack(tmp_path)
    line = refusal(stack, **{variable: f"redis://:hunter2@127.0.0.1:{closed_port}/0"})
    assert variable in line and "does not answer" in line and f"127.0.0.1:{closed_port}" in line


def test_an_absent_rabbitmq(tmp_path: Path, closed_port: int) -> None:
    line = refusal(Stack(tmp_path), CELERY_BROKER_URL=f"amqp://u:hunter2@127.0.0.1:{closed_port}//")
    assert "CELERY_BROKER_URL" in line and "does not answer" in line


def test_a_sqlite_that_may_forget_a_commit_is_refused(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    code = "from django.db import connection as c; c.cursor().execute('PRAGMA synchronous=NORMAL'); "
    code += "from runs.checks import durability_fault; print(durability_fault())"
    done = stack.manage("shell", "-c", code, DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert "not WAL and FULL" in done.stdout


def test_tools_in_one_module_bring_no_service_and_start_all_the_same(settings: Any) -> None:
    from runs.management.up.children import tool_services

    settings.AGENTOPS_TOOLS = ("demo", "bench.pack")
    assert tool_services() == ["demo"]
