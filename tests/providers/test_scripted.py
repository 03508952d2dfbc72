"""The scripted model is as strict as the real API, sees no more than it, and can be as wrong as any model."""

import ast
from pathlib import Path
from typing import Any

import pytest

from runs import providers
from runs.engine.messages import Malformed, proposals
from runs.providers import UnknownModel, provider_for
from runs.providers.base import Answer, ProviderError, Request
from runs.providers.history import InvalidHistory, check_history
from runs.providers.scripted import MISBEHAVIOURS, Scripted

Message = dict[str, Any]
HELLO = [{"type": "text", "text": "Hello"}]


def text(words: str = "x") -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(ident: str, name: str = "look") -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": {}}


def result(ident: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": ident, "content": "{}"}


def talk(*turns: list[dict[str, Any]]) -> list[Message]:
    """A conversation whose roles alternate, the user first."""
    return [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(turns)]


VALID = {
    "one question": talk(HELLO),
    "one call": talk(HELLO, [use("a")], [result("a")]),
    "calls in order, then text": talk(HELLO, [text(), use("a"), use("b")], [result("a"), result("b"), text("note")]),
    "text alone": talk(HELLO, [text("done")], [text("no")]),
}
INVALID = {
    "nothing": ([], "begins and ends with a user"),
    "the model first": ([{"role": "assistant", "content": HELLO}], "begins and ends"),
    "the model last": (talk(HELLO, [text()]), "begins and ends"),
    "twice the user": ([*talk(HELLO), *talk(HELLO), *talk(HELLO)], "alternate"),
    "an unknown role": ([*talk(HELLO), {"role": "system", "content": HELLO}, *talk(HELLO)], "alternate"),
    "an empty question": (talk([]), "empty"),
    "an empty answer": (talk(HELLO, [], HELLO), "empty"),
    "a missing result": (talk(HELLO, [use("a")], HELLO), "do not answer"),
    "one of two results": (talk(HELLO, [use("a"), use("b")], [result("a")]), "do not answer"),
    "results out of order": (talk(HELLO, [use("a"), use("b")], [result("b"), result("a")]), "do not answer"),
    "a result twice": (talk(HELLO, [use("a")], [result("a"), result("a")]), "do not answer"),
    "a result without a call": (talk(HELLO, [text()], [result("a")]), "do not answer"),
    "a result of an unknown call": (talk(HELLO, [use("a")], [result("z")]), "do not answer"),
    "a result one turn late": (talk(HELLO, [use("a")], HELLO, [text()], [result("a")]), "do not answer"),
    "a result in the first message": (talk([result("a")]), "do not answer"),
    "text before a result": (talk(HELLO, [use("a")], [text(), result("a")]), "before text"),
    "an id twice in a turn": (talk(HELLO, [use("a"), use("a")], [result("a"), result("a")]), "unique"),
    "an id twice in the conversation": (talk(HELLO, [use("a")], [result("a")], [use("a")], [result("a")]), "unique"),
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID.keys())
def test_a_history_that_the_real_api_takes_is_taken(messages: list[Message]) -> None:
    check_history(messages)


@pytest.mark.parametrize(("messages", "says"), INVALID.values(), ids=INVALID.keys())
def test_a_history_that_the_real_api_refuses_is_refused(messages: list[Message], says: str) -> None:
    with pytest.raises(InvalidHistory, match=says):
        check_history(messages)


def ask(script: Any, messages: list[Message] | None = None, model: str = "scripted:it") -> Answer:
    request = Request(model=model, system="", tools=[], messages=messages or talk(HELLO))
    return Scripted({"it": script}).complete(request, lambda delta: None, lambda: False)


class TestAnAnswer:
    def test_is_refused_before_the_script_sees_an_invalid_history(self) -> None:
        with pytest.raises(InvalidHistory):
            ask(lambda messages: pytest.fail("was asked"), talk(HELLO, [text()]))

    def test_gets_ids_that_are_unique_in_the_conversation(self) -> None:
        first = ask(lambda m: [{"type": "tool_use", "name": "look", "input": {}}] * 2)
        assert [b["id"] for b in first.blocks] == ["toolu_0_0", "toolu_0_1"]
        more = talk(HELLO, first.blocks, [result("toolu_0_0"), result("toolu_0_1")])
        second = ask(lambda m: [{"type": "tool_use", "name": "look", "input": {}}], more)
        assert second.calls[0].label == "toolu_1_0"

    def test_stops_for_tools_if_it_calls_any(self) -> None:
        assert ask(lambda m: [use("a")]).stop == "tool_use"
        assert ask(lambda m: HELLO).stop == "end"

    def test_carries_the_raw_text_of_its_arguments(self) -> None:
        (call,) = ask(lambda m: [{**use("a"), "input": {"n": 1}}]).calls
        assert (call.tool, call.arguments) == ("look", '{"n": 1}')

    def test_cannot_change_what_was_asked(self) -> None:
        messages = talk(HELLO)
        ask(lambda m: m[0]["content"].clear() or HELLO, messages)
        assert messages == talk(HELLO)

    def test_of_a_script_that_nobody_brings_is_a_bad_key(self) -> None:
        with pytest.raises(ProviderError, match="auth"):
            ask(lambda m: HELLO, model="scripted:other")


class TestMisbehaviour:
    @pytest.mark.parametrize("kind", sorted(set(MISBEHAVIOURS) - {"unknown_tool", "invalid_arguments", "empty_end"}))
    def test_that_the_host_must_not_use(self, kind: str) -> None:
        answer = ask(lambda m: {"misbehave": kind})
        with pytest.raises(Malformed):
            proposals(answer.calls, answer.stop, set())

    @pytest.mark.parametrize("kind", ["unknown_tool", "invalid_arguments"])
    def test_that_the_host_must_answer(self, kind: str) -> None:
        answer = ask(lambda m: {"misbehave": kind})
        assert len(proposals(answer.calls, answer.stop, set())) == 1

    def test_may_be_an_end_without_a_word(self) -> None:
        assert ask(lambda m: {"misbehave": "empty_end"}).blocks == []

    def test_happens_as_often_as_the_script_says(self) -> None:
        provider = Scripted({"it": lambda m: {"misbehave": "truncated", "times": 2, "then": HELLO}})
        request = Request(model="scripted:it", system="", tools=[], messages=talk(HELLO))
        stops = [provider.complete(request, lambda d: None, lambda: False).stop for _ in range(4)]
        assert stops == ["truncated", "truncated", "end", "end"]


def test_a_model_without_a_provider_is_refused_by_name() -> None:
    with pytest.raises(UnknownModel, match="oracle:x"):
        provider_for("oracle:x", {})


@pytest.mark.parametrize("path", sorted(Path(providers.__file__).parent.glob("*.py")), ids=lambda p: p.name)
def test_providers_know_messages_and_nothing_of_a_run(path: Path) -> None:
    allowed = ("runs.engine.messages", "runs.engine.canonical", "runs.providers")
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    ours = {name for name in imported if name.startswith(("runs", "django", "agentops"))}
    assert {name for name in ours if not name.startswith(allowed)} == set()
