"""HTTP around the site: reading, faults, writing, and closing connections in the ways that networks do."""

import logging
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from demo.service.faults import Fault, Kind
from demo.service.routes import Site
from demo.service.web import Answer, Problem, Request

log = logging.getLogger("demo.service")

LARGEST_BODY = 64 * 1024
OWN_PAGES = ("/admin", "/ledger", "/healthz", "/style.css")
RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close sends RST
POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"


class Server(ThreadingHTTPServer):
    """Loopback only; threads die with the process, so SIGTERM waits for nobody."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, site: Site) -> None:
        self.site = site
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the name service for our name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def shutdown_request(self, request: Any) -> None:
        """Close; a polite end first, unless the connection is to be reset."""
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(RESET)) == RESET:
            self.close_request(request)
        else:
            super().shutdown_request(request)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "demo"
    sys_version = ""
    timeout = 30
    disable_nagle_algorithm = True
    server: Server

    def serve(self) -> None:
        """Answer one request of any method."""
        try:
            request = self._read()
            fault = None if request.path.startswith(OWN_PAGES) else self.server.site.faults.take(request)
        except Problem as problem:
            self.close_connection = True
            self._write(problem.answer())
        else:
            self._respond(request, fault)

    do_GET = do_POST = do_PUT = do_DELETE = serve

    def log_message(self, format: str, *args: object) -> None:
        """Into the log, not on stderr."""
        log.debug(format, *args)

    def _read(self) -> Request:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            raise Problem(411, "length_required", "send a Content-Length")
        if int(length) > LARGEST_BODY:
            raise Problem(413, "too_large", f"at most {LARGEST_BODY} bytes")
        self._same_origin()
        parts = urlsplit(self.path)
        return Request(
            id=str(uuid.uuid4()),
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(length)),
        )

    def _same_origin(self) -> None:
        """A page of another site, open in the same browser, must not arm faults here, nor read by a rebound name."""
        host = self.headers.get("Host", "")
        if host.partition(":")[0] not in ("127.0.0.1", "localhost"):
            raise Problem(403, "wrong_host", "this service answers on loopback only")
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}":
            raise Problem(403, "wrong_origin", "this service takes no requests from other sites")

    def _respond(self, request: Request, fault: Fault | None) -> None:
        site = self.server.site
        if fault is None:
            self._write(site.handle(request))
            return
        match fault.kind:
            case Kind.CUT:
                self._hang_up(reset=True)
            case Kind.LATE:
                threading.Thread(target=_later, args=(fault.seconds, site, request), daemon=True).start()
                self._hang_up()
            case Kind.THROTTLE:
                answer = Problem(429, "too_many_requests", "try again later").answer()
                self._write(replace(answer, headers=(("Retry-After", str(fault.retry_after)),)))
            case Kind.ERROR:
                self._write(Problem(500, "internal", "something broke").answer())
            case _:
                self._after(site.handle(request, _pause(fault)), fault)

    def _after(self, answer: Answer, fault: Fault) -> None:
        match fault.kind:
            case Kind.SLOW_REPLY:
                time.sleep(fault.seconds)
                self._write(answer)
            case Kind.REPLY_LOST:
                self._hang_up()
            case Kind.GARBAGE:
                self._write(Answer(status=answer.status, body=b"<html>proxy error", type="text/html"))
            case Kind.HALF_REPLY:
                self._write(answer, cut=len(answer.body) // 2)
                self._hang_up()
            case _:
                self._write(answer)

    def _write(self, answer: Answer, cut: int | None = None) -> None:
        try:
            self.send_response(answer.status)
            fixed = (("Content-Type", answer.type), ("Content-Length", str(len(answer.body))))
            safe = (
                ("Content-Security-Policy", POLICY),
                ("X-Content-Type-Options", "nosniff"),
                ("Cache-Control", "no-store"),
            )
            for name, value in fixed + safe + answer.headers:
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body[:cut])
        except OSError:
            self.close_connection = True  # the caller has gone; what was done stays done

    def _hang_up(self, *, reset: bool = False) -> None:
        self.close_connection = True
        try:
            if reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            else:
                self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            log.debug("the caller hung up first")


def _later(seconds: float, site: Site, request: Request) -> None:
    time.sleep(seconds)
    site.handle(request)


def _pause(fault: Fault) -> Callable[[], None]:
    def pause() -> None:
        if fault.kind is Kind.DELAY:
            time.sleep(fault.seconds)
        if fault.kind is Kind.BROKEN:
            raise Problem(500, "internal", "something broke")

    return pause
