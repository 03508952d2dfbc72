"""What the runner asks of a model API. One file per API, synchronous, closeable, without Django."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol

from runs.engine.messages import ANSWER, Block, Message, Proposal

DETAIL = 300


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request: everything that the model sees. `seconds` is the deadline of the whole exchange.

    `effort` and `thinking` ("", adaptive, off) are left to the API where empty. `server_tools` names tools that the
    vendor itself runs, which is off otherwise; `container` is the one that an earlier answer of theirs named.
    """

    model: str
    system: str
    tools: list[dict[str, Any]]
    messages: list[Message]
    max_tokens: int = ANSWER
    seconds: float = 120.0
    effort: str = ""
    thinking: str = ""
    server_tools: tuple[str, ...] = ()
    container: str = ""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of an exchange, each counted once: `input` is what no cache served, `output` includes `thinking`.

    `complete` is False where a stream was cut before its final counts, or where the server gave none: more may be
    billed. `searches` are web searches that the vendor ran, which have a price of their own.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    thinking: int = 0
    searches: int = 0
    complete: bool = True

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def hit_rate(self) -> float:
        """Part of the prompt that a cache served, 0 to 1."""
        return self.cache_read / self.prompt if self.prompt else 0.0

    def __add__(self, other: "Usage") -> "Usage":
        """Both together; complete if both are."""
        counts = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "complete"}
        return Usage(**counts, complete=self.complete and other.complete)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response that reached its end.

    `stop` is tool_use, end, truncated, refusal, context_full or unknown; calls of any stop but tool_use are never
    executed. `blocks` go back verbatim in the next request; `calls` carry the raw text of their arguments. `wire_stop`
    is the stop as received, `detail` what the API said of it (the category of a refusal), `vendor_ran` the names of
    tools that the vendor ran by itself, `callers` the calls that code of the vendor made, by label. `requests` counts
    the requests behind this answer.
    """

    stop: str
    blocks: list[Block]
    calls: list[Proposal] = field(default_factory=list)
    tokens: int = 0
    usage: Usage = field(default_factory=lambda: Usage(complete=False))
    model: str = ""
    wire_stop: str = ""
    detail: str = ""
    request_id: str = ""
    vendor_ran: tuple[str, ...] = ()
    callers: Mapping[str, str] = field(default_factory=dict)
    container: str = ""
    requests: int = 1


class Kind(StrEnum):
    """What went wrong with a request. Trying the same again helps with the first five alone."""

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server"
    NETWORK = "network"
    DEADLINE = "deadline"
    MALFORMED = "malformed"
    AUTH = "auth"
    BILLING = "billing"
    CONTEXT_OVERFLOW = "context_overflow"
    INVALID_REQUEST = "invalid_request"
    CANCELLED = "cancelled"


class ProviderError(Exception):
    """No usable response. `reason` is for the record; `auth` is never tried again. `retry_after` is in seconds.

    `detail` is what the server said, cut and without the key. `blocks` and `usage` are what had arrived of a stream
    that broke off; nothing of it may run. `usage` is None where nothing can have been billed.
    """

    def __init__(
        self,
        reason: str,
        retry_after: float = 0.0,
        *,
        kind: Kind | None = None,
        detail: str = "",
        status: int = 0,
        request_id: str = "",
        blocks: list[Block] | None = None,
        usage: Usage | None = None,
    ) -> None:
        """Keep the reason short: it is stored with the run."""
        super().__init__(reason if not detail else f"{reason}: {detail}"[:DETAIL])
        self.reason, self.retry_after, self.kind = reason, retry_after, kind
        self.detail, self.status, self.request_id = detail[:DETAIL], status, request_id
        self.blocks, self.usage = blocks or [], usage


class Provider(Protocol):
    """A model API."""

    def complete(self, request: Request, on_delta: Callable[[str], None], cancelled: Callable[[], bool]) -> Answer:
        """Send one request and wait for its end. Raises `ProviderError`."""
        ...
