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
    """`mode` is pass, hole (nothing arrives, nobody is told), no_reply (only answers are lost), refuse or reset."""

    def __init__(self, target: int) -> None:
        self.target, self.mode = target, "pass"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, mode: str) -> None:
        """From now on; `reset` also breaks what is open."""
        self.mode = mode
        if mode in ("reset", "refuse"):
            self._break_open_ones()

    def heal(self) -> None:
        """Let everything through again; what was swallowed stays lost, so its connections are broken."""
        was, self.mode = self.mode, "pass"
        if was != "pass":
            self._break_open_ones()

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
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        while self.mode == "hole":  # the SYN of a partition is lost too: connected, and nothing happens
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
            if self.mode == "hole":
                time.sleep(0.05)
                continue
            data = one.recv(65536)
            if not data:
                return False
            if self.mode == "no_reply" and one is server:
                continue
            (server if one is client else client).sendall(data)
        return True
