"""What the HTTP adapters share: strict JSON, a deadline that no trickle of bytes extends, and errors fit to be stored.

The SDKs' timeouts are per read, so a server that sends pings keeps a call alive for ever, and none of them can be
cancelled from outside. `client` gives them an HTTP client whose every read and write looks at a `Watch`.
"""

import json
import math
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

import httpcore2
import httpx2

from runs.engine.messages import Block
from runs.providers.base import DETAIL, Kind, ProviderError, Usage

BEAT = 0.05
CONNECT = 10.0
LARGEST = 64 * 1024 * 1024
LONGEST_WAIT = 3600.0


class Interrupted(Exception):
    """The watch ended the exchange; `kind` says why."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.kind = kind


class Watch:
    """How long an exchange may go on, over all of its requests: until `seconds` are over or somebody cancels."""

    def __init__(self, seconds: float, cancelled: Callable[[], bool]) -> None:
        self.until, self.cancelled = time.monotonic() + seconds, cancelled
        self.kind: Kind | None = None

    def left(self) -> float:
        """Seconds until the deadline, never below 0."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raise `Interrupted` when the time is over; once over, it stays so."""
        if self.kind is None and self.cancelled():
            self.kind = Kind.CANCELLED
        elif self.kind is None and not self.left():
            self.kind = Kind.DEADLINE
        if self.kind is not None:
            raise Interrupted(self.kind)

    def too_large(self) -> None:
        """End the exchange because the response has no end."""
        self.kind = Kind.MALFORMED
        raise Interrupted(self.kind)


class _Stream(httpcore2.NetworkStream):
    """A connection that is waited for in beats, so that a silent server cannot keep us from looking at the watch."""

    def __init__(self, inner: httpcore2.NetworkStream, watch: Watch) -> None:
        self.inner, self.watch, self.size = inner, watch, 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            self.watch.check()
            try:
                data = self.inner.read(max_bytes, BEAT)
            except httpcore2.ReadTimeout:
                continue
            self.size += len(data)
            if self.size > LARGEST:
                self.watch.too_large()
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        sock, rest = self.inner.get_extra_info("socket"), memoryview(buffer)
        while rest:
            self.watch.check()
            sock.settimeout(BEAT)
            try:
                rest = rest[sock.send(rest) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        self.watch.check()
        limit = min(CONNECT, self.watch.left())
        return _Stream(self.inner.start_tls(ssl_context, server_hostname, limit), self.watch)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    """Opens watched connections."""

    def __init__(self, watch: Watch) -> None:
        self.inner, self.watch = httpcore2.SyncBackend(), watch

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        self.watch.check()
        limit = min(CONNECT, self.watch.left())
        return _Stream(self.inner.connect_tcp(host, port, limit, local_address, socket_options), self.watch)


@lru_cache(maxsize=1)
def _trust() -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=False)  # reading the roots takes longer than the rest of a client


def client(watch: Watch) -> httpx2.Client:
    """An HTTP client for one exchange: to be closed, without proxies or settings from the environment.

    No connection is kept for the next exchange: one that had died meanwhile would fail a request that may be billed.
    """
    transport = httpx2.HTTPTransport(verify=_trust(), trust_env=False)
    transport._pool = httpcore2.ConnectionPool(ssl_context=_trust(), network_backend=_Backend(watch))
    return httpx2.Client(transport=transport, trust_env=False, timeout=None, follow_redirects=False)


def parse(text: str) -> Any:
    """Parse JSON of a response, refusing repeated keys, NaN and what cannot be parsed. Raises `ValueError`.

    Looser than `strict_loads`, which judges the arguments of calls: text may hold any character.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def whole(text: str) -> str:
    """Text whose surrogate pairs were split over two pieces of a stream, put together again."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def count(value: Any) -> int:
    """A count of tokens: 0 where the server sent something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to wait, from 0 to an hour; 0 if it says nothing that can be read."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else 0.0
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return 0.0
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_WAIT)


def said(text: Any, key: str) -> str:
    """What a server or library said, on one line, cut, and without the key however it was quoted back."""
    line = re.sub(r"\s+", " ", text if isinstance(text, str) else repr(text)[: 4 * DETAIL]).strip()
    if len(key) >= 4:
        line = line.replace(key, "[key]")
        # Servers quote the beginning or the end of a key that they refuse.
        line = line.replace(key[:12], "[key]").replace(key[-8:], "[key]") if len(key) >= 20 else line
    line = re.sub(r"(?i)\b(bearer )\S+|\bsk-[\w*.-]{4,}", "[key]", line)
    return line.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:DETAIL]


def failure(
    kind: Kind,
    detail: str = "",
    *,
    wait: float = 0.0,
    status: int = 0,
    request_id: str = "",
    blocks: list[Block] | None = None,
    usage: Usage | None = None,
) -> ProviderError:
    """The error of a kind. A malformed answer names what is wrong with it in its reason, as the runner does."""
    reason = f"malformed:{detail[:80]}" if kind == Kind.MALFORMED else kind.value
    return ProviderError(
        reason, wait, kind=kind, detail=detail, status=status, request_id=request_id, blocks=blocks, usage=usage
    )
