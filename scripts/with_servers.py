"""Run a command with a PostgreSQL and a Redis of its own: `python scripts/with_servers.py COMMAND...`.

Both listen on free loopback ports, keep their data in a temporary folder and are gone afterwards. The command finds
them in DATABASE_URL and TEST_REDIS_URL; what is set already is used as it is: databases are made beside the named one,
but a Redis named here is emptied. Durable as in production: fsync stays on.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def main() -> int:
    """Start what is missing, run the command, stop it all; the command's exit code."""
    if len(sys.argv) < 2:
        sys.exit("usage: python scripts/with_servers.py COMMAND...")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started must not outlive whoever is told to stop
    with ExitStack() as servers:
        for name, start in (("DATABASE_URL", postgresql), ("TEST_REDIS_URL", redis)):
            if not os.environ.get(name):
                os.environ[name] = servers.enter_context(start())
        return subprocess.run(sys.argv[1:]).returncode


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not found:
        sys.exit("agentops: PostgreSQL is missing: apt-get install postgresql")
    with _folder("pg") as folder:
        port, password = free_port(), secrets.token_hex(16)
        (folder / "password").write_text(password)
        _own(folder)
        bin_, data = found[-1], folder / "data"
        _as_postgres(
            bin_ / "initdb", "-D", data, "--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8",
            "--locale=C.UTF-8",
        )  # fmt: skip
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c max_connections=300"
        _as_postgres(bin_ / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-t", "60", "-o", options, "start")
        try:
            yield f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        finally:
            _as_postgres(bin_ / "pg_ctl", "-D", data, "-m", "immediate", "stop")


@contextmanager
def redis() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    program = shutil.which("redis-server")
    if program is None:
        sys.exit("agentops: Redis is missing: apt-get install redis-server")
    with _folder("redis") as folder:
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
        command += ["--save", "", "--appendonly", "no"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"redis://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=f"agentops-{name}-"))
    path.chmod(0o755)  # the database's user must get through
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _own(folder: Path) -> None:
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "postgres")
        shutil.chown(folder / "password", "postgres")


def _as_postgres(*command: str | Path) -> None:
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*prefix, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
    )
    if done.returncode:
        sys.exit(f"agentops: {Path(command[0]).name} failed: {done.stdout[-2000:]}")


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("agentops: Redis did not start")


if __name__ == "__main__":
    sys.exit(main())
