"""A small server of the wire: says what a scenario says, byte by byte if need be, and remembers who asked and left."""

import contextlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
ENDINGS = ("done", "cut", "reset", "close")


@dataclass
class Reply:
    """What is sent for one request.

    `frames` are sent one after another, `pause` seconds apart, in chunks of `chunk` bytes (0: a frame each). `ending`:
    done ends the chunked body; cut shuts the socket inside of it; reset resets the connection; close sends no length
    at all and just closes.
    """

    status: int = 200
    body: bytes = b""
    frames: Iterable[bytes] | None = None
    type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    ending: str = "done"
    pause: float = 0.0
    chunk: int = 0
    wait: float = 0.0


def as_json(body: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON response."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(body).encode(), type="application/json", headers=named)


def as_events(chunks: Iterable[Any], done: bool = True, **how: Any) -> Reply:
    """A stream of chunks, or of raw frames where one is bytes."""
    frames = [chunk if isinstance(chunk, bytes) else frame(chunk) for chunk in chunks]
    return Reply(frames=frames + [b"data: [DONE]\n\n"] * done, type="text/event-stream; charset=utf-8", **how)


def frame(chunk: Any) -> bytes:
    """A frame of server-sent events."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


@dataclass
class Seen:
    """A request as it arrived."""

    scenario: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes


class Fake(ThreadingHTTPServer):
    """Listens on loopback; `/NAME/v1/...` is answered by scenario NAME, `/v1/...` by the one it was started with."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Callable[[Seen, int], Reply], port: int = 0, scenario: str = "") -> None:
        """`answer`: request and its number within the scenario, from 1 -> what to say."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer, self.scenario = answer, scenario
        self.requests: list[Seen] = []
        self.hits: Counter[str] = Counter()
        self.left = threading.Event()

    def __enter__(self) -> "Fake":
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def url(self, scenario: str) -> str:
        """The base URL under which a scenario is played."""
        return f"http://127.0.0.1:{self.server_address[1]}/{scenario}/v1"

    def of(self, scenario: str) -> list[Seen]:
        """The requests of a scenario."""
        return [seen for seen in self.requests if seen.scenario == scenario]

    def handle_error(self, request: Any, address: Any) -> None:
        """A client that leaves is not a fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Fake

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `requests`, people the scenario's own words."""

    def do_POST(self) -> None:
        first, _, rest = self.path.lstrip("/").partition("/")
        scenario, path = (self.server.scenario, self.path) if first == "v1" else (first, f"/{rest}")
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        seen = Seen(scenario, path, {k.lower(): v for k, v in self.headers.items()}, body, raw)
        self.server.requests.append(seen)
        self.server.hits[scenario] += 1
        reply = self.server.answer(seen, self.server.hits[scenario])
        try:
            time.sleep(reply.wait)
            self._send(reply)
        except (BrokenPipeError, ConnectionResetError):
            self.server.left.set()
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"content-type": reply.type, "x-request-id": "req_fake", **reply.headers}.items():
            self.send_header(name, value)
        if reply.frames is None:
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            return
        chunked = reply.ending != "close"
        self.send_header(*(("transfer-encoding", "chunked") if chunked else ("connection", "close")))
        self.end_headers()
        for piece in _pieces(reply):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.flush()
            time.sleep(reply.pause)
        self._end(reply.ending)

    def _end(self, ending: str) -> None:
        if ending == "done":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # The handler's files hold the socket open.
            self.rfile.close()
            with contextlib.suppress(OSError):
                self.wfile.close()
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)


def _pieces(reply: Reply) -> Iterable[bytes]:
    frames = reply.frames or []
    if not reply.chunk:
        yield from frames
        return
    whole = b"".join(frames)
    yield from (whole[at : at + reply.chunk] for at in range(0, len(whole), reply.chunk))
