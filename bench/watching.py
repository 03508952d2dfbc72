"""Who watches and who writes, for the measurements of the face: sockets by the hundred, appends with their times."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from bench.databases import ROOT
from tests.stack import Person, Stack, free_port, until

PAUSE = 0.25  # seconds between two appends: each is told at once, none is coalesced with the next
WRITER = (
    "import sys, time; from tests.longrun import prolong; from runs.models import Run\n"
    "run = Run.objects.get(pk={run})\n"
    "for _ in range({count}):\n"
    "    print(time.time(), flush=True); prolong(run, 1, 1); run.refresh_from_db(); time.sleep({pause})\n"
)
LONG = "from tests.longrun import long_run; print('run', long_run({calls}).pk)"


def grown(stack: Stack, calls: int) -> int:
    """A run that has made so many calls and is at rest; its id."""
    said = stack.manage("shell", "-v0", "-c", LONG.format(calls=calls), PYTHONPATH=str(ROOT)).stdout
    return int(said.rpartition("run ")[2])


def written(stack: Stack, run: int, count: int) -> list[float]:
    """Let another process append `count` turns to a run; the time before each append, in seconds since 1970."""
    code = WRITER.format(run=run, count=count, pause=PAUSE)
    return _times(stack.manage("shell", "-v0", "-c", code, PYTHONPATH=str(ROOT)).stdout)


def sent(redis: str, count: int) -> list[float]:
    """The same of the bare peer: the time before each of its sends."""
    command = [sys.executable, "-m", "bench.peers.bare_channels", "SEND", str(count)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"BARE_REDIS": redis}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return _times(done.stdout)


def _times(printed: str) -> list[float]:
    return [float(line) for line in printed.split()]


@contextmanager
def bare(redis: str) -> Iterator[tuple[str, int]]:
    """The bare peer, running: the address of its sockets, and its process id."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "bench.peers.bare_channels:app",
        "--port",
        str(port),
        "--log-level",
        "error",
    ]
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"BARE_REDIS": redis})
    try:
        until(lambda: _listens(port), 20, "the bare peer listens")
        yield f"ws://127.0.0.1:{port}/", server.pid
    finally:
        server.terminate()
        server.wait(10)


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def as_watcher(person: Person, path: str) -> dict[str, Any]:
    """How a signed-in person opens a socket, for `Crowd`."""
    cookies = "; ".join(f"{c.name}={c.value}" for c in person.client.cookies.jar)
    url = person.url.replace("http", "ws", 1) + path
    return {"uri": url, "origin": Origin(person.url), "additional_headers": {"Cookie": cookies}}


class Crowd:
    """So many sockets in a thread of their own; `frames` has when each of them heard each frame with "html" in it."""

    def __init__(self, how: dict[str, Any], size: int) -> None:
        """`how`: what `websockets` connects with."""
        import threading

        self.how, self.size, self.frames = how, size, [[] for _ in range(size)]  # type: list[list[float]]
        self.open = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self._all(),), daemon=True)

    def __enter__(self) -> "Crowd":
        """All are connected, and what they are told at first has come."""
        self.thread.start()
        until(lambda: self.open == self.size, 120, "all sockets are open")
        time.sleep(1.5)
        for heard in self.frames:
            heard.clear()
        return self

    def __exit__(self, *_: object) -> None:
        """All are closed."""
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(30)

    async def _all(self) -> None:
        self.over = asyncio.Event()
        gate = asyncio.Semaphore(20)
        watchers = [asyncio.create_task(self._one(n, gate)) for n in range(self.size)]
        await self.over.wait()
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    async def _one(self, number: int, gate: asyncio.Semaphore) -> None:
        async with gate:
            socket = await connect(**self.how, proxy=None, open_timeout=60, compression=None)
        self.open += 1
        try:
            async for text in socket:
                now = time.time()
                if "html" in json.loads(text):
                    self.frames[number].append(now)
        finally:
            with suppress(ConnectionClosed):
                await socket.close()


def delays(began: list[float], heard: list[float]) -> list[float]:
    """Milliseconds from each beginning to the first thing heard after it and before the next."""
    found = []
    for at, following in zip(began, [*began[1:], began[-1] + 5], strict=True):
        if first := next((time_ for time_ in heard if at <= time_ < following), None):
            found.append((first - at) * 1000)
    return found
