"""A provider that answers from a script: for demonstrations and tests, and as strict as the real API.

A script is a function over the rendered messages, the same that a real API would get; it returns content blocks, or
``{"misbehave": kind, "times": 1, "then": blocks}``. Ids that it leaves out are given here. An invalid history is
refused, not repaired.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from runs.engine.messages import Block, Message, Proposal
from runs.providers.base import Answer, ProviderError, Request
from runs.providers.history import check_history

Script = Callable[[list[Message]], Any]


class Scripted:
    """Answers of ``scripted:<name>``. Nothing is sent to anybody, so nobody bills it."""

    billed = False

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        """`scripts`: name -> function over messages."""
        self.scripts = scripts
        self.asked: Counter[str] = Counter()

    def complete(self, request: Request, on_delta: Callable[[str], None], cancelled: Callable[[], bool]) -> Answer:
        """Check the history, run the script, answer in blocks."""
        name = request.model.partition(":")[2]
        if name not in self.scripts:
            raise ProviderError("auth")
        check_history(request.messages)
        said = self.scripts[name](json.loads(json.dumps(request.messages)))
        number = sum(message["role"] == "assistant" for message in request.messages)
        if isinstance(said, dict):
            # "times" misbehaviours of the very same request, then what the script says under "then".
            same = json.dumps(request.messages)
            self.asked[same] += 1
            if self.asked[same] <= said.get("times", 1) or "then" not in said:
                return MISBEHAVIOURS[said["misbehave"]](number)
            said = said["then"]
        return answer(identified(said, number))


def identified(blocks: list[Block], number: int) -> list[Block]:
    """The blocks, each call with an id that is unique in its conversation."""
    return [
        {"id": f"toolu_{number}_{i}", **block} if block["type"] == "tool_use" else block
        for i, block in enumerate(blocks)
    ]


def answer(blocks: list[Block], stop: str = "") -> Answer:
    """An answer of these blocks, counted at four characters a token."""
    calls = [Proposal(b["id"], b["name"], json.dumps(b["input"])) for b in blocks if b["type"] == "tool_use"]
    return Answer(
        stop=stop or ("tool_use" if calls else "end"), blocks=blocks, calls=calls, tokens=len(json.dumps(blocks)) // 4
    )


def _call(ident: str, name: str, arguments: Any) -> Block:
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


def _truncated(number: int) -> Answer:
    return answer([_call(f"toolu_{number}_0", "finish", {"answer": "cut in the mid"})], stop="truncated")


def _duplicate_id(number: int) -> Answer:
    twice = _call(f"toolu_{number}_0", "ask_user", {"question": "?", "schema": {}})
    return answer([twice, twice])


def _unknown_tool(number: int) -> Answer:
    return answer([_call(f"toolu_{number}_0", "launch_rocket", {})])


def _invalid_arguments(number: int) -> Answer:
    return answer([_call(f"toolu_{number}_0", "ask_user", {"question": 7, "schema": {}, "extra": True})])


def _too_many(number: int) -> Answer:
    return answer([_call(f"toolu_{number}_{i}", "give_up", {"reason": "x"}) for i in range(17)])


def _unparsable(number: int) -> Answer:
    broken = _call(f"toolu_{number}_0", "give_up", {})
    return Answer(stop="tool_use", blocks=[broken], calls=[Proposal(broken["id"], "give_up", '{"reason": "cut')])


MISBEHAVIOURS: dict[str, Callable[[int], Answer]] = {
    "truncated": _truncated,
    "duplicate_id": _duplicate_id,
    "unknown_tool": _unknown_tool,
    "invalid_arguments": _invalid_arguments,
    "too_many_calls": _too_many,
    "unparsable": _unparsable,
    "empty_end": lambda number: Answer(stop="end", blocks=[]),
    "refusal": lambda number: answer([{"type": "text", "text": "I can't help with that."}], stop="refusal"),
}
