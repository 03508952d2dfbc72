"""What the runner asks of a model API. One file per API, synchronous, closeable, without Django."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from runs.engine.messages import Message, Proposal


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request: everything that the model sees. `seconds` is the deadline of the whole exchange."""

    model: str
    system: str
    tools: list[dict[str, Any]]
    messages: list[Message]
    max_tokens: int = 8_192
    seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response that reached its end.

    `stop` is tool_use, end, truncated or refusal; `blocks` go back verbatim in the next request; `calls` carry the raw
    text of their arguments.
    """

    stop: str
    blocks: list[dict[str, Any]]
    calls: list[Proposal] = field(default_factory=list)
    tokens: int = 0


class ProviderError(Exception):
    """No usable response. `reason` is for the record; `auth` is never tried again. `retry_after` is in seconds."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        """Keep the reason short: it is stored with the run."""
        super().__init__(reason)
        self.reason, self.retry_after = reason, retry_after


class Provider(Protocol):
    """A model API."""

    def complete(self, request: Request, on_delta: Callable[[str], None], cancelled: Callable[[], bool]) -> Answer:
        """Send one request and wait for its end. Raises `ProviderError`."""
        ...
