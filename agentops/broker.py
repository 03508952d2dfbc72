"""kombu's filesystem transport with whole messages only.

The stock one writes messages and tables under their final names: a reader can take them half-written, and die of a JSON
error or drop a message. It also moves taken messages through the system's temporary folder, perhaps on another disk.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from queue import Empty
from time import time_ns
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

LOOK_UP = 0.25  # seconds


class Channel(filesystem.Channel):
    """A queue is a folder; a message appears in it complete, by rename."""

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]  # as kombu's
        """Write beside, then rename: readers see all of it or nothing."""
        name = f"{time_ns():020d}_{uuid4().hex}.{queue}.msg"
        draft = Path(self.data_folder_out, f"{name}.draft")
        draft.write_text(dumps(payload))
        draft.rename(draft.with_suffix(""))

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:
        """A queue is named by its routing key: a message published while others still bind goes where it belongs."""
        return [routing_key]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: Any, queue: str) -> None:
        """As kombu keeps the table of an exchange, but replaced whole under one lock.

        Kombu writes it in place: who binds or publishes in that moment reads an empty table, and dies or drops.
        """
        file = Path(self.control_folder, f"{exchange}.exchange")
        entry = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue)
        with open(Path(self.control_folder, ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table = self.get_table(exchange) if file.exists() else []
            if entry not in table:
                draft = Path(self.control_folder, f".{uuid4().hex}.draft")
                draft.write_text(dumps([entry, *table]))
                draft.rename(file)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest message that no other consumer took first."""
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = Path(self.processed_folder, name)
            try:
                os.rename(Path(self.data_folder_in, name), taken)
            except FileNotFoundError:
                continue
            try:
                return loads(taken.read_text())
            finally:
                taken.unlink(missing_ok=True)
        raise Empty


class Transport(filesystem.Transport):
    """Registered under `filesystem://` by agentops.celery."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> Any:
        """The worker looks between two of these whether it was asked to stop; two seconds would be felt at Ctrl-C."""
        return super().drain_events(connection, timeout=min(timeout or LOOK_UP, LOOK_UP))
