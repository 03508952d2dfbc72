"""One request to the order service: sent once, never again, and told apart by whether it may have arrived.

Every call opens its own connection. A kept one may have been closed by the service in the same moment, and then nobody
could say whether the request arrived; a refused connect proves that it did not.
"""

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from runs.tools.base import Context

LONGEST_CONNECT = 5.0
LONGEST_WAIT = 300.0
LARGEST_REPLY = 1_000_000
# None: the network. A simulation brings its own wire.
transport: httpx2.BaseTransport | None = None


class NotSent(Exception):
    """No byte of the request left; the text is the status."""


class Lost(Exception):
    """The request may have arrived and may have had its effect; the text is the status."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply that was read to its end and understood."""

    status: int
    body: dict[str, Any]
    retry_after: float = 0.0

    @property
    def code(self) -> str:
        """The service's own word for what is wrong."""
        error = self.body.get("error")
        return str(error.get("code", "")) if isinstance(error, dict) else ""


def call(
    ctx: Context, method: str, path: str, *, customer: str = "", key: str = "", body: dict[str, str] | None = None
) -> Reply:
    """Send one request within the call's deadline. Raises `NotSent` or `Lost`."""
    url = _address() + path
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    headers |= {"X-Customer": customer} if customer else {}
    headers |= {"Idempotency-Key": key} if key else {}
    content = json.dumps(body, sort_keys=True, separators=(",", ":")).encode() if body is not None else b""
    if ctx.cancelled():
        raise NotSent("cancelled")
    if (left := ctx.seconds_left()) <= 0:
        raise NotSent("deadline")
    timeout = httpx2.Timeout(left, connect=min(left, LONGEST_CONNECT))
    try:
        with _client().stream(method, url, headers=headers, content=content, timeout=timeout) as response:
            return _understood(response, _all(ctx, response))
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise NotSent("unreachable") from error
    except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
        raise NotSent("bad_address") from error
    except httpx2.TimeoutException as error:
        raise Lost("timeout") from error
    except httpx2.RequestError as error:
        raise Lost("connection_lost") from error


def _address() -> str:
    """Read at each call: the service may have been started again elsewhere."""
    if url := os.environ.get("DEMO_SERVICE_URL"):
        return url.rstrip("/")
    place = Path(os.environ.get("AGENTOPS_VAR", "var")) / "demo-service.json"
    try:
        return str(json.loads(place.read_text())["url"]).rstrip("/")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotSent("unreachable") from error


@cache
def _client() -> httpx2.Client:
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.Client(trust_env=False, follow_redirects=False, limits=limits, transport=transport)


def _all(ctx: Context, response: httpx2.Response) -> bytes:
    """The whole body; timeouts of the library are per read, so a trickle is stopped here."""
    data = b""
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > LARGEST_REPLY:
            raise Lost("unreadable_reply")
        if ctx.seconds_left() <= 0:
            raise Lost("timeout")
    return data


def _understood(response: httpx2.Response, data: bytes) -> Reply:
    status = response.status_code
    if status == httpx2.codes.TOO_MANY_REQUESTS:
        return Reply(status=status, body={}, retry_after=_wait(response.headers.get("Retry-After", "")))
    if status >= 500:
        raise Lost(f"http_{status}")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Lost("unreadable_reply") from error
    if not isinstance(body, dict):
        raise Lost("unreadable_reply")
    return Reply(status=status, body=body)


def _wait(text: str) -> float:
    """Seconds of a Retry-After, bounded: a remote must not park a run for a year."""
    return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdecimal() else 1.0
