"""Asks the fake server through the provider and the real SDK."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from runs.engine.messages import Malformed, Message, Proposal, proposals
from runs.providers.base import Answer, ProviderError, Request
from runs.providers.openai_compatible import DIALECTS, OpenAICompatible
from tests.fakes.openai import DIALECT
from tests.fakes.openai_strict import KEY
from tests.fakes.openai_wire import Fake

HELLO: Message = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as the runner lists it; all properties are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"name": name, "description": f"Tool {name}", "input_schema": schema}


TOOLS = [
    tool("write", path={"type": "string"}, n={"type": "integer"}),
    tool("look", q={"type": "string"}),
    tool("list_all"),
]


@dataclass
class Asked:
    """What came of a request: an answer or an error, the text that was passed on, and what may be executed."""

    result: Answer | ProviderError
    live: list[str] = field(default_factory=list)

    @property
    def answer(self) -> Answer:
        """The answer, if there is one."""
        assert isinstance(self.result, Answer), self.result
        return self.result

    @property
    def error(self) -> ProviderError:
        """The error, if there is one."""
        assert isinstance(self.result, ProviderError), self.result
        return self.result

    @property
    def executed(self) -> list[tuple[str, str]]:
        """Name and arguments of what the host goes on with."""
        if isinstance(self.result, ProviderError):
            return []
        try:
            return [(call.tool, call.arguments) for call in usable(self.result)]
        except Malformed:
            return []


def usable(answer: Answer) -> list[Proposal]:
    """As the runner judges an answer."""
    return proposals(answer.calls, answer.stop, set()) if answer.blocks else []


def ask(
    fake: Fake,
    scenario: str,
    messages: list[Message] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    key: str = KEY,
    system: str = "Be brief.",
    seconds: float = 5.0,
    live: list[str] | None = None,
    **quirks: Any,
) -> Asked:
    """Ask a scenario in the dialect that it is of."""
    dialect = replace(DIALECTS[DIALECT.get(scenario, "openai")], base_url=fake.url(scenario), **quirks)
    request = Request(
        model="openai:fake-1", system=system, tools=TOOLS, messages=messages or [HELLO], seconds=seconds, max_tokens=500
    )
    live = [] if live is None else live
    try:
        return Asked(OpenAICompatible(dialect, key).complete(request, live.append, cancelled), live)
    except ProviderError as error:
        return Asked(error, live)


def answered(messages: list[Message], answer: Answer, *texts: str) -> list[Message]:
    """The conversation after an answer: each call with its result, then texts."""
    results = [
        {"type": "tool_result", "tool_use_id": call.label, "content": f"done {n}", "is_error": False}
        for n, call in enumerate(answer.calls)
    ]
    said = [{"type": "text", "text": text} for text in texts]
    return [*messages, {"role": "assistant", "content": answer.blocks}, {"role": "user", "content": results + said}]
