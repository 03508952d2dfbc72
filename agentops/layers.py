"""A channel layer for the processes of one machine, over datagram sockets: no server, no package.

Each process that has consumers binds one socket; a group message is sent to every socket of the folder. Messages are
hints (ids and a sequence number): one that is lost costs the watcher's next poll, never an event.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from channels.layers import InMemoryChannelLayer
from django.core.exceptions import ImproperlyConfigured

BIGGEST = 60_000  # bytes of one datagram; ours are far below 1,000
PATIENCE = (0.002, 0.005, 0.01, 0.02, 0.05)  # a full receiver (the kernel queues 10) is mostly free again in a moment


def runtime_folder(var: str | Path) -> Path:
    """A short folder for the sockets of one data folder: the path of a socket may have only some 100 bytes."""
    digest = hashlib.sha256(str(Path(var).resolve()).encode()).hexdigest()[:16]
    folder = Path(f"/tmp/agentops-{os.geteuid()}-{digest}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ImproperlyConfigured(f"{folder} is not a private folder of yours: remove it, it is made again")
    return folder


class LocalSocketLayer(InMemoryChannelLayer):
    """Groups are kept where their consumers are; the sockets only carry `[group, message]` there."""

    def __init__(self, var: str, **options: Any) -> None:
        super().__init__(**options)
        self.folder = runtime_folder(var)
        self.sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sender.setblocking(False)
        self.receiver: socket.socket | None = None
        self.home: asyncio.AbstractEventLoop | None = None
        self.pid = 0
        self.tasks: set[asyncio.Task[None]] = set()

    async def new_channel(self, prefix: str = "specific.") -> str:
        """A name for one consumer; the first consumer of a process opens its socket."""
        self._listen()
        return str(await super().new_channel(prefix))

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """To every listening process of the folder, from any thread and any loop."""
        self.require_valid_group_name(group)
        data = json.dumps([group, message]).encode()
        if len(data) > BIGGEST:
            raise ValueError(f"a channel message of {len(data)} bytes: send ids, let the receiver read the database")
        waiting = [name for name in self._sockets() if not self._offer(name, data)]
        for pause in PATIENCE:
            if not waiting:
                return
            await asyncio.sleep(pause)
            waiting = [name for name in waiting if not self._offer(name, data)]

    async def close(self) -> None:
        """Stop listening (a server that ends)."""
        self._forget()
        await super().close()

    def _sockets(self) -> list[str]:
        with os.scandir(self.folder) as entries:
            return [entry.path for entry in entries if entry.name.endswith(".sock")]

    def _offer(self, name: str, data: bytes) -> bool:
        """False when the receiver is full for the moment."""
        try:
            self.sender.sendto(data, name)
        except BlockingIOError:
            return False
        except FileNotFoundError:
            pass
        except ConnectionRefusedError:  # its process is gone
            with suppress(FileNotFoundError):
                os.unlink(name)
        return True

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self.receiver and self.home is loop and self.pid == os.getpid():
            return
        self._forget()  # the loop was closed (tests) or we are a fork: the old socket has no reader
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        receiver.bind(str(self.folder / f"{os.getpid()}-{uuid4().hex[:8]}.sock"))
        loop.add_reader(receiver.fileno(), self._readable)
        self.receiver, self.home, self.pid = receiver, loop, os.getpid()

    def _forget(self) -> None:
        receiver, home = self.receiver, self.home
        self.receiver = self.home = None
        if receiver is None:
            return
        if self.pid == os.getpid():
            if home and not home.is_closed():
                home.remove_reader(receiver.fileno())
            with suppress(OSError):
                os.unlink(receiver.getsockname())
        receiver.close()

    def _readable(self) -> None:
        """Runs on the consumers' own loop, so their queues wake it (the stock layer's do not, from a thread)."""
        receiver, home = self.receiver, self.home
        while receiver is not None and home is not None:
            try:
                group, message = json.loads(receiver.recv(BIGGEST))
            except BlockingIOError:
                return
            except ValueError:
                continue
            task = home.create_task(super().group_send(group, message))
            self.tasks.add(task)  # a task that nobody holds may be collected before it ran
            task.add_done_callback(self.tasks.discard)
