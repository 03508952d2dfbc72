"""The folder queue hands out whole messages, each once, while many write and many take."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Empty
from typing import Any

from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES

import agentops.celery  # noqa: F401  (registers the transport)


def connection(folder: Path) -> Connection:
    for name in ("queue", "taken", "control"):
        (folder / name).mkdir(exist_ok=True)
    options = {"data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue")}
    options |= {"processed_folder": str(folder / "taken"), "control_folder": str(folder / "control")}
    return Connection("filesystem://localhost", transport_options=options | {"polling_interval": 0.01})


def test_every_message_whole_and_once(tmp_path: Path) -> None:
    assert TRANSPORT_ALIASES["filesystem"] == "agentops.broker:Transport"
    got: list[Any] = []
    written = threading.Event()

    def take() -> None:
        with connection(tmp_path) as mine, mine.SimpleQueue("q") as queue:
            while True:
                try:
                    message = queue.get(block=False)
                except Empty:
                    if written.is_set():
                        return
                    continue
                got.append(message.payload["n"])
                message.ack()

    takers = [threading.Thread(target=take) for _ in range(3)]
    for taker in takers:
        taker.start()
    with connection(tmp_path) as mine, mine.SimpleQueue("q") as queue:
        for number in range(300):
            queue.put({"n": number, "filler": "x" * 5000})
    written.set()
    for taker in takers:
        taker.join(20)
    assert sorted(got) == list(range(300))
    assert not list((tmp_path / "taken").iterdir())
