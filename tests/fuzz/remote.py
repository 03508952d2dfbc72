"""The order service inside of this process: its real site, keys and ledger behind the real client of the demo.

Only the wire is ours: a transport that hands a request to `Site.handle`, and plays the faults in virtual time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

import demo.client
from demo.service.routes import Site
from demo.service.store import Store
from demo.service.web import Answer, Problem, Request
from tests.fuzz.clock import SECOND, Clock

FAULTS = (
    "refused", "cut", "error", "broken", "throttle", "reply_lost", "garbage", "half_reply", "late", "slow",
)  # fmt: skip
REFUSALS = {
    "error": Problem(500, "internal", "something broke"),
    "throttle": Problem(429, "too_many_requests", "later"),
    "declines": Problem(422, "exceeds_refundable", "not any more"),
}


class Remote(httpx2.BaseTransport):
    """`rate` of the requests meet a fault; `fired` counts which."""

    def __init__(self, clock: Clock, dice: random.Random) -> None:
        self.site = Site(Store(Path(":memory:")), retention=86_400)
        self.clock, self.dice, self.rate = clock, dice, 0.0
        self.kinds, self.path, self.late = FAULTS, "", (0.2, 1.5, 2.5, 8, 900)
        self.fired: dict[str, int] = {}
        self.script: list[str] = []  # what the next effects meet, before chance has its say
        self._numbers = itertools.count(1)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request, or fail it as the network would."""
        parts = urlsplit(str(request.url))
        asked = Request(
            id=str(next(self._numbers)), method=request.method, path=parts.path, query=dict(parse_qsl(parts.query)),
            headers={name.lower(): value for name, value in request.headers.items()}, body=request.read(),
        )  # fmt: skip
        if self.script and asked.method != "GET":
            return self._faulty(self.script.pop(0), asked)
        spared = not asked.path.startswith(self.path) or (asked.method == "GET" and self.path)
        if spared or self.dice.random() >= self.rate:
            return _reply(self.site.handle(asked))
        kind = self.dice.choice(self.kinds)
        self.fired[kind] = self.fired.get(kind, 0) + 1
        return self._faulty(kind, asked)

    def _faulty(self, kind: str, asked: Request) -> httpx2.Response:
        if kind == "refused":
            raise httpx2.ConnectError("refused")
        if kind == "late":
            wait = int(self.dice.choice(self.late) * SECOND)
            self.clock.at(self.clock.now + wait, lambda: self.site.handle(asked))
        if kind in ("cut", "late"):
            raise httpx2.ReadError("reset")
        if kind in REFUSALS:
            return _reply(REFUSALS[kind].answer(), {"Retry-After": "1"})
        if kind == "broken":
            return _reply(self.site.handle(asked, _break))
        answer = self.site.handle(asked)
        if kind == "reply_lost":
            raise httpx2.ReadTimeout("no reply")
        if kind == "slow":
            self.clock.advance(self.dice.choice((0.4, 1.3)) * SECOND)
            return _reply(answer)
        if kind == "half_reply":
            raise httpx2.RemoteProtocolError("the reply broke off")
        return httpx2.Response(answer.status, text="<html>proxy error")

    def effects(self) -> list[dict[str, Any]]:
        """The ledger, the oracle outside of the product: every effect that really happened."""
        return self.site.store.rows("SELECT * FROM ledger ORDER BY n")

    def text_of(self, message: str) -> str:
        """What a message said: it carries no key, so its text names its call."""
        row = self.site.store.row("SELECT text FROM messages WHERE n = ?", int(message[2:]))
        return str(row["text"]) if row else ""


def _break() -> None:
    raise Problem(500, "internal", "something broke")


def _reply(answer: Answer, headers: dict[str, str] | None = None) -> httpx2.Response:
    return httpx2.Response(answer.status, content=answer.body, headers=dict(answer.headers) | (headers or {}))


def connected(remote: Remote, monkeypatch: Any) -> Iterator[Remote]:
    """Let the demo's own client speak to this remote."""
    monkeypatch.setenv("DEMO_SERVICE_URL", "http://127.0.0.1:9")
    demo.client._client.cache_clear()
    demo.client.transport = remote
    yield remote
    demo.client.transport = None
    demo.client._client.cache_clear()
    remote.site.store.close()
