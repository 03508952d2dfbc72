"""Scripted models as plans: a generator that yields what the model says and receives what came of it.

A script must be a pure function of the messages, as a real model is. So a plan is begun anew at each request and fed
the turns that the messages show; what it yields after the last of them is the answer. Nothing is kept in between.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]
Says = list[Block] | dict[str, Any]
Script = Callable[[list[Message]], Says]

VALUE = re.compile(r'<(input|fact) name="([^"]*)" (?:trust|source)="[^"]*">(.*)</\1>', re.DOTALL)
TRIES = 3


@dataclass(frozen=True)
class Seen:
    """One call of the model and what it was told of it."""

    tool: str
    asked: dict[str, Any]
    result: dict[str, Any]

    @property
    def outcome(self) -> str:
        """Such as ok, declined, refused, denied, unknown."""
        return str(self.result.get("outcome", ""))

    @property
    def ok(self) -> bool:
        """True if it came to what was wanted."""
        return self.outcome == "ok"

    @property
    def arguments(self) -> dict[str, Any]:
        """What really ran: a person may have edited it."""
        return dict(self.result.get("arguments") or self.asked)

    @property
    def data(self) -> dict[str, Any]:
        """What the tool gave back."""
        data = self.result.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def evidence(self) -> list[str]:
        """Ids to cite, without the bare call where an object form says more."""
        ids = [str(e) for e in self.result.get("evidence", [])]
        return [e for e in ids if not e.startswith("call:")] or ids or [str(self.result.get("call", ""))]

    @property
    def why(self) -> str:
        """The reason that a person, a rule or the service gave."""
        return str(
            self.result.get("reason")
            or self.data.get("message")
            or self.result.get("status")
            or self.outcome
            or "no reason given"
        )


@dataclass(frozen=True)
class Turn:
    """What came of one turn: the results of its calls in order, and what else was said."""

    seen: list[Seen]
    told: str = ""


@dataclass
class Tale:
    """What a plan knows: the opening, and the turns so far."""

    inputs: dict[str, str]
    facts: dict[str, str]
    opening: str
    turns: list[Turn] = field(default_factory=list)

    def last_ok(self, tool: str) -> Seen | None:
        """The latest success of a tool, so that nothing is done twice."""
        return next((s for turn in reversed(self.turns) for s in reversed(turn.seen) if s.tool == tool and s.ok), None)

    def done_before(self, tool: str) -> bool:
        """True if an earlier segment of this run had an effect with the tool."""
        return re.search(rf"^Effects so far: .*\b{tool}: [1-9]", self.opening, re.MULTILINE) is not None


Plan = Generator[Says, Turn, None]
Reads = dict[str, Callable[[Tale], dict[str, Any]]]


def script(plan: Callable[[Tale], Plan]) -> Script:
    """Make a script of a plan. A plan that came to its end is begun again: a person resumed the run."""

    def answer(messages: list[Message]) -> Says:
        tale = _opening(messages)
        steps = _forever(plan, tale)
        says = next(steps)
        for turn in _turns(messages):
            tale.turns.append(turn)
            says = steps.send(turn)
        return says

    return answer


def say(text: str, *calls: Block) -> Says:
    """A turn with a sentence and calls."""
    return [{"type": "text", "text": text}, *calls]


def call(name: str, /, **arguments: Any) -> Block:
    """A tool call; the provider gives it an id."""
    return {"type": "tool_use", "name": name, "input": arguments}


def ask(text: str, name: str, /, **arguments: Any) -> Generator[Says, Turn, Seen]:
    """One call alone in its turn; a failure of the moment is tried again, an answer is not."""
    for _ in range(TRIES):
        turn = yield say(text, call(name, **arguments))
        seen = turn.seen[0] if turn.seen else Seen(name, arguments, {})
        if seen.outcome not in ("retryable", ""):
            break
    return seen


def finish(tale: Tale, answer: str, evidence: list[str], reads: Reads) -> Plan:
    """End with evidence; read what the host finds missing, then end again, and give up where that does not help.

    `reads` says how to read again: tool -> its arguments.
    """
    for _ in range(TRIES):
        turn = yield say("I have what I need.", call("finish", answer=answer, evidence=evidence))
        lacks = turn.told + " ".join(str(m) for s in turn.seen for m in s.result.get("missing", []))
        for tool, arguments in reads.items():
            if tool in lacks or "read it again" in lacks:
                seen = yield from ask("The host wants newer evidence.", tool, **arguments(tale))
                evidence = [e for e in evidence if e not in lacks] + (seen.evidence if seen.ok else [])
    yield from give_up("The host does not accept the end that I can prove.")


def give_up(reason: str) -> Plan:
    """Say truthfully that it cannot be done."""
    yield say("I cannot do this.", call("give_up", reason=reason))


def _forever(plan: Callable[[Tale], Plan], tale: Tale) -> Plan:
    while True:
        yield from plan(tale)


def _opening(messages: list[Message]) -> Tale:
    texts = [block["text"] for block in messages[0]["content"] if block["type"] == "text"]
    values: dict[str, dict[str, str]] = {"input": {}, "fact": {}}
    for text in texts:
        if match := VALUE.fullmatch(text):
            values[match[1]].setdefault(unescape(match[2]), unescape(match[3]))
    plain = "\n".join(text for text in texts if not VALUE.fullmatch(text))
    return Tale(values["input"], values["fact"], plain)


def _turns(messages: list[Message]) -> Iterator[Turn]:
    """Each assistant message that was answered."""
    for said, answered in pairwise(messages[1:]):
        if said["role"] != "assistant" or answered["role"] != "user":
            continue
        results = {b["tool_use_id"]: b["content"] for b in answered["content"] if b["type"] == "tool_result"}
        told = "\n".join(b["text"] for b in answered["content"] if b["type"] == "text")
        uses = [b for b in said["content"] if b["type"] == "tool_use"]
        yield Turn([Seen(b["name"], b["input"], _object(results.get(b["id"], ""))) for b in uses], told)


def _object(content: Any) -> dict[str, Any]:
    """The JSON of a result; anything else counts as a result that says nothing."""
    if isinstance(content, list):
        content = "".join(block.get("text", "") for block in content)
    try:
        value = json.loads(content)
    except ValueError:
        return {"outcome": "unreadable"}
    return value if isinstance(value, dict) else {"outcome": "unreadable"}
