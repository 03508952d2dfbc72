"""What the parts of the service hand each other: a request, an answer, a problem."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HTML = "text/html; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request, read completely; header names are lower case."""

    id: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def digest(self) -> str:
        """What makes two requests under one idempotency key the same request."""
        return hashlib.sha256(f"{self.method} {self.path}\n".encode() + self.body).hexdigest()

    def json(self) -> dict[str, Any]:
        """The body as a JSON object. Raises `Problem` 400."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Problem(400, "bad_json", "the body is not JSON") from error
        if not isinstance(value, dict):
            raise Problem(400, "bad_json", "the body is not a JSON object")
        return value


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One reply."""

    status: int = 200
    body: bytes = b""
    type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Problem(Exception):
    """A request that is answered with an error; `code` is for programs, `message` for people."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, **more}}

    def answer(self) -> Answer:
        """The reply that carries it."""
        return reply(self.body, status=self.status)


def reply(value: Any, *, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """A JSON reply."""
    return Answer(status=status, body=json.dumps(value, separators=(",", ":")).encode(), headers=headers)


def not_found() -> Problem:
    """Absent and another customer's are one answer, so that nobody learns which numbers exist."""
    return Problem(404, "not_found", "no such object")
