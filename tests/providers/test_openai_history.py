"""What goes back to a server of chat completions is what came from it; a history that was touched is not sent."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runs.engine.messages import Message
from runs.providers.base import Kind
from runs.providers.chat_messages import received, sent
from tests.fakes.openai import ONE, SCENARIOS, TWO, answer
from tests.fakes.openai_asking import HELLO, TOOLS, answered, ask
from tests.fakes.openai_strict import KEY
from tests.fakes.openai_wire import Fake, Json

WITH_CALLS = [
    "call", "two_calls", "interleaved", "no_arguments", "null_arguments", "object_arguments", "repeated_head",
    "zero_index", "no_index", "no_ids", "missing_ids", "same_ids", "loose", "stop_with_calls", "reasoning",
    "openai", "vllm", "ollama", "llama.cpp",
]  # fmt: skip


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake(answer) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def stored(messages: list[Message]) -> list[Message]:
    """As they come back from the record."""
    loaded: list[Message] = json.loads(json.dumps(messages))
    return loaded


@pytest.mark.parametrize("scenario", WITH_CALLS)
def test_a_strict_server_takes_its_own_answers_back(fake: Fake, scenario: str, stream: bool) -> None:
    first = ask(fake, scenario, stream=stream).answer
    second = ask(fake, scenario, stored(answered([HELLO], first, "A note.")), stream=stream)
    # Any refusal would be an error: what ends with a note is answered as the scenario says.
    third = ask(fake, scenario, stored(answered([HELLO], first)), stream=stream)
    assert second.answer.calls and third.answer.blocks[1]["text"] == "Done."
    assert all(seen.scenario == scenario for seen in fake.requests)


class TestAnAnswerThatIsSentAgain:
    def test_is_byte_for_byte_what_was_received(self, fake: Fake) -> None:
        first = ask(fake, "two_calls", stream=False).answer
        ask(fake, "two_calls", stored(answered([HELLO], first)), stream=False)
        assert fake.requests[1].body["messages"][2] == TWO.whole()["choices"][0]["message"]

    def test_is_the_same_when_it_came_in_pieces(self, fake: Fake) -> None:
        first = ask(fake, "two_calls").answer
        ask(fake, "two_calls", stored(answered([HELLO], first)))
        assert fake.requests[1].body["messages"][2] == TWO.whole()["choices"][0]["message"]

    def test_differs_only_where_no_server_would_take_it(self, fake: Fake) -> None:
        first = ask(fake, "loose").answer
        ask(fake, "loose", stored(answered([HELLO], first)))
        calls = fake.requests[1].body["messages"][2]["tool_calls"]
        assert [call["id"] for call in calls] == ["call_1_1", "call_1_2"]
        assert calls[0]["function"]["arguments"] == '{"path": "a.txt", "n": 1}'
        assert [block["call"].get("id") for block in first.blocks[1:]] == ["", None], "the record keeps what came"

    def test_has_one_result_for_each_call_and_then_what_people_say(self, fake: Fake) -> None:
        history = answered([HELLO], ask(fake, "two_calls").answer, "Note one.", "Note two.")
        history[-1]["content"][0]["is_error"] = True
        history[-1]["content"][1]["content"] = ""
        ask(fake, "two_calls", history)
        assert fake.requests[1].body["messages"][3:] == [
            {"role": "tool", "tool_call_id": "call_a", "content": "Failed: done 0"},
            {"role": "tool", "tool_call_id": "call_b", "content": "(no output)"},
            {"role": "user", "content": "Note one.\n\nNote two."},
        ]

    def test_gets_ids_that_no_earlier_turn_has(self, fake: Fake) -> None:
        history = [HELLO]
        for _ in range(3):
            history = answered(history, ask(fake, "same_ids", [*history[:-1], _noted(history[-1])]).answer)
        labels = [block["id"] for message in history[1::2] for block in message["content"] if "id" in block]
        assert labels == ["call_a", "call_1_2", "call_2_1", "call_2_2", "call_3_1", "call_3_2"]

    @given(
        content=st.none() | st.text(max_size=5),
        calls=st.lists(
            st.fixed_dictionaries({"id": st.sampled_from(["a", "b", "", "call_1_2"]), "x": st.integers()}), max_size=3
        ),
        more=st.dictionaries(
            st.sampled_from(["refusal", "reasoning", "annotations", "audio"]), st.none() | st.text(), max_size=3
        ),
    )
    @settings(max_examples=60, deadline=None)
    def test_loses_nothing(self, content: str | None, calls: list[Json], more: Json) -> None:
        calls = [{**call, "type": "function", "function": {"name": "look", "arguments": "{}"}} for call in calls]
        message: Json = {"role": "assistant", "content": content, **more} | ({"tool_calls": calls} if calls else {})
        blocks, found = received(copy.deepcopy(message), [HELLO], TOOLS)
        assume(blocks)
        results = [{"type": "tool_result", "tool_use_id": call.label, "content": "ok"} for call in found]
        after = results or [{"type": "text", "text": "Go on."}]
        history = [HELLO, {"role": "assistant", "content": blocks}, {"role": "user", "content": after}]
        again = sent("", stored(history), "system", ())[1]
        ids = [call.pop("id") for call in again.get("tool_calls", [])]
        assert ids == [call.label for call in found] and len(set(ids)) == len(ids)
        for call in message.get("tool_calls", []):
            call.pop("id")
        assert again == message


def _noted(message: Message) -> Message:
    """The message with a note behind it, so that the fake goes on with its scenario."""
    return {**message, "content": [*message["content"], {"type": "text", "text": "Go on."}]}


def conversation() -> list[Message]:
    """Three turns with two calls, one call and two calls."""
    history = [HELLO]
    for number, said in enumerate((TWO, ONE, TWO)):
        message = said.whole()["choices"][0]["message"]
        for call in message["tool_calls"]:
            call["id"] += str(number)
        blocks, calls = received(message, history, TOOLS)
        results = [{"type": "tool_result", "tool_use_id": call.label, "content": call.label} for call in calls]
        history = [*history, {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    return history


def delete(items: list[Any], at: int, width: int, to: int) -> list[Any]:
    return items[:at] + items[at + width :]


def double(items: list[Any], at: int, width: int, to: int) -> list[Any]:
    return items[:to] + items[at : at + width] + items[to:]


def move(items: list[Any], at: int, width: int, to: int) -> list[Any]:
    rest = delete(items, at, width, to)
    return rest[:to] + items[at : at + width] + rest[to:]


@given(
    touch=st.sampled_from([delete, double, move]),
    where=st.none() | st.integers(1, 6),
    at=st.integers(0, 6),
    width=st.integers(1, 4),
    to=st.integers(0, 7),
)
@settings(max_examples=150, deadline=None)
def test_a_history_in_which_something_is_missing_moved_or_doubled_is_not_sent(
    silent: Fake,
    touch: Callable[[list[Any], int, int, int], list[Any]],
    where: int | None,
    at: int,
    width: int,
    to: int,
) -> None:
    history = conversation()
    touched = copy.deepcopy(history)
    if where is None:
        touched = touch(touched, at, width, to)
    else:
        touched[where]["content"] = touch(touched[where]["content"], at, width, to)
    # A conversation that ends earlier is one that was.
    assume(touched != history[: len(touched)] or len(touched) % 2 == 0)
    error = ask(silent, "text", touched or [{"role": "user", "content": []}]).error
    assert (error.reason, error.kind) == ("invalid_request", Kind.INVALID_REQUEST)
    assert silent.requests == []


@pytest.fixture(scope="module")
def silent() -> Iterator[Fake]:
    with Fake(answer) as server:
        yield server


def test_the_history_that_was_not_touched_is_sent(fake: Fake) -> None:
    assert ask(fake, "text", conversation()).answer.blocks[1]["text"] == "Done."


@pytest.mark.parametrize(
    "content",
    [[{"type": "tool_use", "id": "a", "name": "look", "input": {}}], [{"type": "text", "text": "of another API"}]],
)
def test_an_answer_of_another_api_is_not_sent(fake: Fake, content: list[dict[str, Any]]) -> None:
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "x"}] if "id" in content[0] else HELLO["content"]
    history = [HELLO, {"role": "assistant", "content": content}, {"role": "user", "content": results}]
    assert "another API" in ask(fake, "text", history).error.detail
    assert fake.requests == []


def test_a_block_that_this_api_does_not_know_is_not_sent(fake: Fake) -> None:
    odd = [{"role": "user", "content": [{"type": "image", "source": {}}]}]
    assert "'image'" in ask(fake, "text", odd).error.detail


@pytest.mark.parametrize("dialect", ["openai", "vllm", "ollama", "llama.cpp"])
def test_the_fake_is_as_strict_as_the_real_server(fake: Fake, dialect: str) -> None:
    """What our own checks keep from being sent, each server refuses too."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    user = {"role": "user", "content": "Hello"}
    wrong: dict[str, tuple[list[Json], str]] = {
        "nothing": ([], "empty array"),
        "a call without a result": ([user, asked, user], "must be followed by tool messages"),
        "a call at the end": ([user, asked], "must be followed by tool messages"),
        "a result without a call": ([user, result], "must be a response to a preceeding message"),
        "a result twice": ([user, asked, result, result], "must be a response to a preceeding message"),
        "a call without an id": ([user, {**asked, "tool_calls": [{**call, "id": ""}]}], "Missing required parameter"),
        "an id twice": ([user, {**asked, "tool_calls": [call, call]}, result], "Duplicate value"),
        "arguments as an object": (
            [user, {**asked, "tool_calls": [{**call, "function": {"name": "x", "arguments": {}}}]}, result],
            "expected a string",
        ),
        "an empty answer": ([user, {"role": "assistant", "content": None}], "expected a string, got null"),
        "an unknown role": ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
    }
    with httpx2.Client(trust_env=False, headers={"authorization": f"Bearer {KEY}"}) as client:
        for name, (messages, says) in wrong.items():
            body = {"model": "fake-1", "messages": messages}
            reply = client.post(f"{fake.url(dialect)}/chat/completions", json=body)
            assert reply.status_code == 400 and says in reply.text, name
    assert dialect in SCENARIOS
