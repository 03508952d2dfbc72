"""Starts the processes, keeps them running, and ends them all with itself.

One thread, one loop: `PR_SET_PDEATHSIG` is bound to the *thread* that started a child, so a helper thread that ends
would take its children with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
BACK_OFF = (0.1, 0.5, 1.0, 2.0, 5.0)
STEADY = 30.0  # seconds after which a process counts as well and its next fall is a first one
GRACE = 8.0  # TERM to KILL; leases that a worker still holds are safe to lose


@dataclass
class Child:
    """One supervised process over all its lives."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float = 0.0
    falls: int = 0
    rest: bytes = field(default=b"", repr=False)


class Supervisor:
    """`run()` returns when everything has ended."""

    def __init__(
        self, commands: dict[str, list[str]], cwd: Path, table: Path, health: Callable[[], str | None]
    ) -> None:
        self.children = [Child(name, command) for name, command in commands.items()]
        self.width = max(len(child.name) for child in self.children)
        self.cwd, self.table, self.health = cwd, table, health
        self.selector = selectors.DefaultSelector()
        self.stop_asked = 0
        self.ready = False
        self.next_look = self.next_word = 0.0

    # --- the loop -----------------------------------------------------------------------------------------------------
    def run(self, ready: str) -> int:
        """Supervise until a signal asks to stop; the line `ready` is printed once everything is alive."""
        self._catch_signals()
        self.next_word = time.monotonic() + 30
        while not self.stop_asked:
            self._start_due()
            self._wait(0.2)
            self._reap()
            if not self.ready and time.monotonic() >= self.next_look:
                self._look(ready)
        self.say("up", "stopping (again to end at once)")
        self._end_all()
        self.table.unlink(missing_ok=True)
        return 0

    def _look(self, ready: str) -> None:
        missing = self.health()
        self.next_look = time.monotonic() + 0.2
        if missing is None:
            self.ready = True
            self.say("up", ready)
        elif time.monotonic() > self.next_word:
            self.next_word = time.monotonic() + 30
            self.say("up", f"not ready yet: {missing}")

    def _wait(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            if isinstance(key.data, Child):
                self._pump(key.data)
            else:
                with suppress(BlockingIOError):
                    self.wake.recv(512)

    # --- starting and ending ------------------------------------------------------------------------------------------
    def _start_due(self) -> None:
        now = time.monotonic()
        due = [child for child in self.children if child.process is None and child.start_at <= now]
        for child in due:
            self._start(child)
        if due:
            self._write_table()

    def _start(self, child: Child) -> None:
        parent = os.getpid()

        def die_with_parent() -> None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died between fork and prctl
                os._exit(1)

        child.process = subprocess.Popen(
            child.command,
            cwd=self.cwd,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C in the terminal reaches the supervisor alone, which ends them in order
            preexec_fn=die_with_parent,
        )
        child.started = time.monotonic()
        assert child.process.stdout is not None
        os.set_blocking(child.process.stdout.fileno(), False)
        self.selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def _reap(self) -> None:
        for child in self.children:
            if child.process is None or child.process.poll() is None:
                continue
            code = child.process.returncode
            self._drop(child)
            now = time.monotonic()
            child.falls = 1 if now - child.started > STEADY else child.falls + 1
            pause = BACK_OFF[min(child.falls, len(BACK_OFF)) - 1]
            child.start_at = now + pause
            if not self.stop_asked:
                why = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
                self.say("up", f"{child.name} {why}; starting it again in {pause:g} s")

    def _drop(self, child: Child) -> None:
        """Take leave of an ended process: its last words, its pipe."""
        assert child.process is not None and child.process.stdout is not None
        self._pump(child)
        if child.rest:
            self.say(child.name, child.rest.decode("utf-8", "replace"))
            child.rest = b""
        with suppress(KeyError):
            self.selector.unregister(child.process.stdout)
        child.process.stdout.close()
        child.process = None

    def _end_all(self) -> None:
        self._signal_all(signal.SIGTERM)
        until, killed = time.monotonic() + GRACE, False
        while any(child.process for child in self.children):
            self._wait(0.1)
            self._reap()
            if not killed and (time.monotonic() > until or self.stop_asked > 1):
                killed = True
                self._signal_all(signal.SIGKILL)

    def _signal_all(self, number: signal.Signals) -> None:
        for child in self.children:
            if child.process:
                child.process.send_signal(number)

    def _catch_signals(self) -> None:
        self.wake, far = socket.socketpair()
        self.wake.setblocking(False)
        far.setblocking(False)
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        self._far = far  # kept open as long as we are

        def ask(number: int, frame: FrameType | None) -> None:
            self.stop_asked += 1

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, ask)

    # --- what people and tests see ------------------------------------------------------------------------------------
    def _write_table(self) -> None:
        pids: dict[str, Any] = {child.name: child.process.pid for child in self.children if child.process}
        draft = self.table.with_suffix(".draft")
        draft.write_text(json.dumps(pids))
        draft.replace(self.table)

    def _pump(self, child: Child) -> None:
        assert child.process is not None and child.process.stdout is not None
        while True:
            try:
                data = os.read(child.process.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            if not data:
                with suppress(KeyError):
                    self.selector.unregister(child.process.stdout)
                return
            *lines, child.rest = (child.rest + data).split(b"\n")
            for line in lines:
                self.say(child.name, line.decode("utf-8", "replace"))

    def say(self, name: str, text: str) -> None:
        """One prefixed line; when nobody reads any more (a closed terminal), stop."""
        try:
            sys.stdout.write(f"{name:<{self.width}} | {text}\n")
            sys.stdout.flush()
        except OSError:
            self.stop_asked = self.stop_asked or 1
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (for the rest of the process)
