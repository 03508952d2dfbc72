"""Things in the air: a request to the model, a tool call, a probe; each in a thread of its own, bounded by a deadline.

A thread touches no database and no run: it lands its result on a queue, and the loop records it. A thread that does
not come back in time is left behind; what it finds out later is late evidence.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from runs.engine.canonical import to_json
from runs.engine.next_step import ASK
from runs.journal.faultpoint import faultpoint
from runs.providers.base import Answer, Provider, ProviderError, Request
from runs.tools.base import Context, Kind, Outcome, Proof, Tool

log = logging.getLogger(__name__)
# Threads are used again: starting one takes longer than the rest of a turn. More than can ever fly at a time, so that
# nothing waits on the ground while its deadline runs.
AIR = ThreadPoolExecutor(max_workers=1024, thread_name_prefix="flight")
GRACE = 2.0


@dataclass(eq=False)
class Flight:
    """One thing in the air. `ordinal` is the call's, or 0 for the model; `how` is ask, run, resend or lookup."""

    ordinal: int
    how: str
    work: Callable[["Flight"], Any]
    seconds: float
    effect: bool = False
    turn: int = 0
    revision: int = 0
    key: str = ""
    args: str = ""
    began: float = 0.0
    cancelled: threading.Event = field(default_factory=threading.Event)
    left_to: "Callable[[Flight], None] | None" = None
    result: Any = None
    ms: int = 0

    def seconds_left(self) -> float:
        """Time until the deadline, never below 0."""
        return max(0.0, self.began + self.seconds - time.monotonic())

    @property
    def overdue(self) -> bool:
        """True when the thread had its time and did not come back."""
        return time.monotonic() > self.began + self.seconds + GRACE

    def launch(self, landed: "SimpleQueue[Flight]") -> None:
        """Hand it to a thread; the flight is put on `landed` when it is over."""
        self.began = time.monotonic()
        AIR.submit(self._fly, landed)

    def _fly(self, landed: "SimpleQueue[Flight]") -> None:
        self.result = self.work(self)
        self.ms = int((time.monotonic() - self.began) * 1000)
        if self.ordinal != ASK:
            faultpoint("after_effect")
        (self.left_to or landed.put)(self)


def ask_flight(provider: Provider, request: Callable[[], Request], seconds: float) -> Flight:
    """A request to the model, made when the thread starts; lands an `Answer` or a `ProviderError`."""

    def work(flight: Flight) -> Answer | ProviderError:
        try:
            return provider.complete(request(), lambda delta: None, flight.cancelled.is_set)
        except ProviderError as error:
            return error
        except Exception as error:
            log.exception("provider failed")
            return ProviderError(f"provider: {type(error).__name__}")

    return Flight(ASK, "ask", work, seconds)


def call_flight(
    tool: Tool, how: str, args: str, key: str, facts: Mapping[str, Any], may_send: Callable[[], bool]
) -> Flight:
    """A tool call, a resend of it, or a look-up; lands an `Outcome`. The caller fills in turn, ordinal and revision.

    `may_send` is asked last of all: a worker that was frozen past its lease must not send (reliability.md 2.4).
    """

    def work(flight: Flight) -> Outcome:
        context = Context(key=key, facts=facts, seconds_left=flight.seconds_left, cancelled=flight.cancelled.is_set)
        function = tool.look_up if how == "lookup" and tool.look_up else tool.run
        faultpoint("before_send")
        if not may_send():
            return Outcome(kind=Kind.RETRYABLE, proof=Proof.PRE_SEND, status="lease over before sending")
        faultpoint("sending")
        try:
            values = tool.spec.arguments.model_validate_json(args, strict=True)  # a look may be by newer code
            named = {name: getattr(values, name) for name in type(values).model_fields}
            outcome = function(context, **named)
            if not isinstance(outcome, Outcome):
                raise TypeError("no Outcome")
            to_json(outcome.data)  # what cannot be stored must not stop the record of an effect
            return outcome
        except Exception as error:
            log.exception("tool %s raised", tool.name)
            kind = Kind.FATAL if tool.spec.effect.again else Kind.UNKNOWN
            return Outcome(kind=kind, status=f"the tool raised {type(error).__name__}")

    return Flight(-1, how, work, tool.spec.deadline, effect=tool.spec.effect != "read", key=key, args=args)


def proven(tool: Tool, outcome: Outcome) -> Outcome:
    """The outcome that may be recorded: a failure of an effect without proof that nothing happened is `unknown`."""
    claims_nothing = outcome.kind in (Kind.RETRYABLE, Kind.FATAL)
    if claims_nothing and not tool.spec.effect.again and outcome.proof is None:
        return Outcome(kind=Kind.UNKNOWN, status=outcome.status or "failed without proof of no effect")
    return outcome
