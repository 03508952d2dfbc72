"""Misbehaviour on demand: for the next requests that match, or for one request by its `X-Fault` header.

Faults live in memory: a restarted service behaves.
"""

import threading
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from demo.service.web import Problem, Request


class Kind(StrEnum):
    """What goes wrong. `late` plays a request that hangs somewhere on its way, so its key is not known meanwhile."""

    DELAY = "delay"
    SLOW_REPLY = "slow_reply"
    THROTTLE = "throttle"
    ERROR = "error"
    BROKEN = "broken"
    REPLY_LOST = "reply_lost"
    CUT = "cut"
    LATE = "late"
    GARBAGE = "garbage"
    HALF_REPLY = "half_reply"


MEANING = {
    Kind.DELAY: "wait before the effect",
    Kind.SLOW_REPLY: "wait after the effect, then reply",
    Kind.THROTTLE: "429 with Retry-After, no effect",
    Kind.ERROR: "500 before anything began, no effect, nothing kept under the key",
    Kind.BROKEN: "500 after the work began, no effect, kept under the key",
    Kind.REPLY_LOST: "the effect happens, the connection is closed without a reply",
    Kind.CUT: "the connection is reset before any effect",
    Kind.LATE: "the connection is closed now, the effect happens later",
    Kind.GARBAGE: "the effect happens, the reply is not JSON",
    Kind.HALF_REPLY: "the effect happens, the reply breaks off in the middle",
}
LONGEST = 120.0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One rule.

    Empty `method`, `path` (a prefix) and `contains` (in path or body) match all; `times` None: until cleared.
    """

    id: str = ""
    kind: Kind
    method: str = ""
    path: str = ""
    contains: str = ""
    times: int | None = 1
    seconds: float = 2.0
    retry_after: int = 1

    def matches(self, request: Request) -> bool:
        """True if the rule speaks of this request."""
        return (
            self.method in ("", request.method)
            and request.path.startswith(self.path)
            and (self.contains in request.path or self.contains.encode() in request.body)
        )


class Board:
    """The faults that are armed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: dict[str, Fault] = {}
        self._count = 0

    def arm(self, fault: Fault) -> Fault:
        """Add a rule; one with a known id replaces the other."""
        with self._lock:
            self._count += 1
            fault = replace(fault, id=fault.id or f"F-{self._count}")
            self._faults[fault.id] = fault
            return fault

    def clear(self, name: str = "") -> None:
        """Take away one rule, or all."""
        with self._lock:
            if name:
                self._faults.pop(name, None)
            else:
                self._faults.clear()

    def armed(self) -> list[dict[str, Any]]:
        """The rules with what is left of them, oldest first."""
        with self._lock:
            return [asdict(fault) for fault in self._faults.values()]

    def take(self, request: Request) -> Fault | None:
        """The fault for this request, counted; the header goes first, then the oldest rule that matches."""
        if text := request.headers.get("x-fault"):
            return from_header(text)
        with self._lock:
            fault = next((f for f in self._faults.values() if f.matches(request)), None)
            if fault is None or fault.times is None:
                return fault
            if fault.times <= 1:
                del self._faults[fault.id]
            else:
                self._faults[fault.id] = replace(fault, times=fault.times - 1)
            return fault


def from_header(text: str) -> Fault:
    """Read ``reply_lost`` or ``late; seconds=2``. Raises `Problem` 400."""
    kind, *pairs = (part.strip() for part in text.split(";"))
    return from_fields({"kind": kind} | dict(pair.partition("=")[::2] for pair in pairs))


def from_fields(fields: dict[str, Any]) -> Fault:
    """Read a fault from JSON or form fields. Raises `Problem` 400."""
    if unknown := set(fields) - set(Fault.__dataclass_fields__):
        raise Problem(400, "bad_fault", f"unknown fields: {', '.join(sorted(unknown))}")
    texts = {name: str(fields.get(name) or "") for name in ("id", "method", "path", "contains")}
    try:
        times = fields.get("times", 1)
        fault = Fault(
            kind=Kind(fields.get("kind", "")),
            times=None if times in (None, "") else int(times),
            seconds=float(fields.get("seconds", 2.0)),
            retry_after=int(fields.get("retry_after", 1)),
            **(texts | {"method": texts["method"].upper()}),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise Problem(400, "bad_fault", str(error)) from error
    if not 0 <= fault.seconds <= LONGEST or (fault.times is not None and fault.times < 1):
        raise Problem(400, "bad_fault", f"seconds must be 0 to {LONGEST:.0f}, times at least 1")
    return fault
