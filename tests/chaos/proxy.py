"""A TCP link that can be cut: a program of ours speaks through it, and a test decides what arrives."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time

RESET = struct.pack("ii", 1, 0)


class Link:
    """A way to one server. What `mode` does with bytes and new connections:

    pass: through. hole: nothing arrives, nobody is told. no_request, no_reply: only one direction is lost. refuse: new
    connections are reset. reset: open ones too. hold: what a client says arrives `seconds` later, even if it has gone.
    `hurt` counts connections to which something was done since the last `cut`: a cut that hit nobody was not tested.
    """

    def __init__(self, target: int) -> None:
        self.target, self.mode, self.seconds = target, "pass", 0.0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self.listener.getsockname()[1])
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self._hurt: set[int] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def hurt(self) -> int:
        """How many connections the present or last cut touched."""
        return len(self._hurt)

    def cut(self, mode: str, seconds: float = 0.0) -> None:
        """From now on; `reset` also breaks what is open."""
        self._hurt = set()
        self.mode, self.seconds = mode, seconds
        if mode == "reset":
            self._hurt |= {id(client) for client, _ in self.pairs}
            self._break_open_ones()

    def heal(self) -> None:
        """Let everything through again. What was swallowed stays lost: its connections break first."""
        if self.mode not in ("pass", "hold"):
            self._break_open_ones()
        self.mode = "pass"

    def close(self) -> None:
        """No more connections."""
        self.mode = "refuse"
        self.listener.close()
        self._break_open_ones()

    def _break_open_ones(self) -> None:
        for pair in list(self.pairs):
            for one in pair:
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode in ("refuse", "reset"):
                self._hurt.add(id(client))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        while self.mode == "hole":  # the SYN of a partition is lost too: connected, and nothing happens
            self._hurt.add(id(client))
            time.sleep(0.05)
        try:
            server = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            client.close()
            return
        pair = (client, server)
        self.pairs.append(pair)
        try:
            while self._pump(client, server):
                pass
        except (OSError, ValueError):
            pass
        finally:
            self.pairs.remove(pair)
            client.close()
            server.close()

    def _pump(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select((client, server), (), (), 0.2)
        for one in ready:
            asking = one is client
            if self.mode == "hole":
                self._hurt.add(id(client))
                time.sleep(0.05)
                continue
            data = one.recv(65536)
            if not data:
                return False
            if self.mode == ("no_request" if asking else "no_reply"):
                self._hurt.add(id(client))
                continue
            if self.mode == "hold" and asking:
                self._hurt.add(id(client))
                time.sleep(self.seconds)
            (server if asking else client).sendall(data)
        return True
