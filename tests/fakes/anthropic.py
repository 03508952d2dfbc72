"""A Messages API on this machine: real wire, real refusals, and every way in which a stream goes wrong.

    python -m tests.fakes.anthropic --scenario v02_call --port 8900     # then ANTHROPIC_BASE_URL=http://127.0.0.1:8900
    python -m tests.fakes.anthropic --list

The first segment of the path names the scenario, so that one server plays all of them. Each request of a scenario gets
its next reply, the last one again and again; a scenario may also be a function from request to reply. Requests are
checked as the real API does, and kept.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.anthropic_rules import Refused, check, merged, signature
from tests.fakes.anthropic_wire import SCENARIOS, Reply, body_of, error_body, events_of, frames_of, message_of

KEY = "sk-ant-test-0123456789abcdefghijklmnop"
LONGEST = 15.0


class Fake(ThreadingHTTPServer):
    """The server. `asked` is what came, `gone` the scenarios whose client went away, `strange` what must not come."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0, only: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.scenarios: dict[str, list[Reply] | Callable[[dict[str, Any]], Reply]] = dict(SCENARIOS)
        self.only = only
        self.hits: Counter[str] = Counter()
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.given: list[list[dict[str, Any]]] = []
        self.gone: list[str] = []
        self.strange: list[str] = []
        self.lock = threading.Lock()

    def url(self, scenario: str) -> str:
        """Base URL of a scenario."""
        return f"http://127.0.0.1:{self.server_address[1]}/{scenario}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is recorded where it is noticed, anything else is a bug of the fake."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            self.strange.append(repr(sys.exc_info()[1]))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Fake

    def do_POST(self) -> None:
        *prefix, v1, messages = self.path.strip("/").split("/")
        scenario = self.server.only or "/".join(prefix)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        if (v1, messages) != ("v1", "messages") or scenario not in self.server.scenarios:
            self.server.strange.append(self.path)
            self.send(404, error_body("not_found_error", f"Not found: {self.path}"))
        elif self.headers.get("authorization") != f"Bearer {KEY}":
            self.send(401, error_body("authentication_error", f"invalid key: {self.headers['authorization']}"))
        else:
            self.play(scenario, raw)

    def play(self, scenario: str, raw: bytes) -> None:
        try:
            if not self.headers.get("anthropic-version"):
                raise Refused("anthropic-version: header is required")
            body = json.loads(raw)
            self.check(body)
        except (Refused, ValueError) as refusal:
            self.send(400, error_body("invalid_request_error", str(refusal)))
            return
        with self.server.lock:
            self.server.asked.append((scenario, dict(self.headers), body))
            play = self.server.scenarios[scenario]
            reply = play(body) if callable(play) else play[min(self.server.hits[scenario], len(play) - 1)]
            self.server.hits[scenario] += 1
        try:
            self.answer(reply.bound(lambda thinking: signature(body, thinking)), body)
        except OSError:
            self.server.gone.append(scenario)
            self.close_connection = True

    def check(self, body: Any) -> None:
        """As the API; a paused turn, and nothing else, may come back as the last message."""
        rest = body
        said = body.get("messages") if isinstance(body, dict) else None
        if said and said[-1].get("role") == "assistant" and said[-1]["content"] in self.server.given:
            rest = {**body, "messages": [*said, {"role": "user", "content": "go on"}]}
        check(rest)

    def answer(self, reply: Reply, body: dict[str, Any]) -> None:
        time.sleep(reply.wait)
        if reply.body is not None:
            self.send(reply.status, reply.body, reply.headers)
            return
        if reply.paused:
            so_far = merged(body["messages"])[-1]
            before = so_far["content"] if so_far["role"] == "assistant" else []
            self.server.given.append([*before, *message_of(reply)["content"]])
        if body.get("stream"):
            self.stream(reply)
        else:
            self.send(200, body_of(reply), reply.headers)

    def send(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        data = body.encode("utf-8", "surrogatepass")
        self.send_response(status)
        given = {"content-type": "application/json", "request-id": "req_fake_1", **(headers or {})}
        for name, value in {"content-length": str(len(data)), **given}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("request-id", "req_fake_1")
        chunked = reply.ending != "eof"
        self.send_header(*(("transfer-encoding", "chunked") if chunked else ("connection", "close")))
        self.end_headers()
        for frame in frames_of(reply, events_of(reply)):
            self.write(frame, reply.chunk, chunked)
        if reply.ending in ("pings", "stall"):
            self.keep_waiting(reply.ending == "pings")
        elif reply.ending == "reset":
            # What was sent must have been read: a reset throws away what waits in the client's buffer.
            time.sleep(0.05)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif reply.ending == "whole":
            self.wfile.write(b"0\r\n\r\n")
        if reply.ending != "whole":
            self.close_connection = True

    def write(self, data: bytes, size: int, chunked: bool) -> None:
        if not data:
            return
        pieces = [data[i : i + size] for i in range(0, len(data), size)] if size else [data]
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            self.wfile.flush()

    def keep_waiting(self, pings: bool) -> None:
        """Until the client goes away: with pings that is a failed write, without it the end of its side."""
        until = time.monotonic() + LONGEST
        self.connection.settimeout(0.02)
        while time.monotonic() < until:
            if pings:
                self.write(b'event: ping\ndata: {"type": "ping"}\n\n', 0, True)
            try:
                if not self.connection.recv(1):
                    raise BrokenPipeError
            except TimeoutError:
                continue

    def log_message(self, *_: Any) -> None:
        """Quiet: what came is kept in `asked`."""


@contextmanager
def running(port: int = 0, only: str = "") -> Iterator[Fake]:
    """A server in a thread of its own."""
    fake = Fake(port, only)
    thread = threading.Thread(target=fake.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.shutdown()
        fake.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="", help="play this one, whatever the path says")
    parser.add_argument("--port", type=int, default=8900)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.list:
        sys.stdout.write("\n".join(SCENARIOS) + "\n")
        return
    if given.scenario and given.scenario not in SCENARIOS:
        parser.error(f"unknown scenario {given.scenario}: see --list")
    with running(given.port, given.scenario) as fake:
        sys.stdout.write(f"http://127.0.0.1:{fake.server_address[1]}  key: {KEY}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
