"""kombu's filesystem transport with whole messages only.

The stock one writes a message under its final name, so a reader can take it half-written and the worker dies of a JSON
error; and it moves taken messages through the system's temporary folder, which may be another disk.
"""

from __future__ import annotations

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
