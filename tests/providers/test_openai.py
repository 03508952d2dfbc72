"""Chat completions through the real SDK: what each answer amounts to, streamed and not (providers.md 5)."""

import copy
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runs.engine.messages import Malformed
from runs.providers import provider_for
from runs.providers.base import Answer, ProviderError, Request, Usage
from runs.providers.openai_compatible import DIALECTS, OPENAI, VLLM, OpenAICompatible
from tests.fakes.openai import ODD, PATH, SCENARIOS, answer
from tests.fakes.openai_asking import HELLO, TOOLS, answered, ask, usable
from tests.fakes.openai_strict import KEY
from tests.fakes.openai_wire import Fake

WRITE, LOOK = ("write", PATH), ("look", '{"q": "x"}')
BOTH = [WRITE, LOOK]
EXACT = Usage(input=15, output=30, cache_read=100, cache_write_5m=5, thinking=7)

# scenario -> stop, and the calls that the host goes on with
FINE: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "text": ("end", []),
    "call": ("tool_use", [WRITE]),
    "bytes": ("tool_use", BOTH),
    "two_calls": ("tool_use", BOTH),
    "interleaved": ("tool_use", BOTH),
    "no_arguments": ("tool_use", [("list_all", "{}")]),
    "null_arguments": ("tool_use", [("list_all", "{}")]),
    "object_arguments": ("tool_use", [WRITE]),
    "repeated_head": ("tool_use", [WRITE]),
    "zero_index": ("tool_use", BOTH),
    "no_index": ("tool_use", BOTH),
    "no_ids": ("tool_use", BOTH),
    "missing_ids": ("tool_use", BOTH),
    "same_ids": ("tool_use", BOTH),
    "loose": ("tool_use", BOTH),
    "stop_with_calls": ("tool_use", BOTH),
    "reasoning": ("tool_use", BOTH),
    "reasoning_content": ("tool_use", BOTH),
    "usage_on_each": ("tool_use", BOTH),
    "null_usage": ("tool_use", BOTH),
    "no_usage": ("tool_use", BOTH),
    "tags_as_text": ("end", []),
    "openai": ("tool_use", BOTH),
    "vllm": ("tool_use", BOTH),
    "ollama": ("tool_use", BOTH),
    "llama.cpp": ("tool_use", BOTH),
}
# scenario -> stop, and why none of its calls may run
UNUSED = {
    "bad_json": ("tool_use", "unparsable"),
    "trailing": ("tool_use", "unparsable"),
    "twice": ("tool_use", "unparsable"),
    "nan": ("tool_use", "unparsable"),
    "list_arguments": ("tool_use", "unparsable"),
    "empty_arguments": ("truncated", "truncated"),
    "cut_says_calls": ("truncated", "truncated"),
    "cut_says_length": ("truncated", "truncated"),
    "whole_says_length": ("truncated", "truncated"),
    "nothing_says_length": ("truncated", "truncated"),
    "filtered": ("refusal", "refusal"),
    "refused": ("refusal", "refusal"),
    "future_end": ("unknown", "stop:unknown"),
}


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake(answer) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("scenario", FINE)
def test_an_answer_that_is_whole_is_used(fake: Fake, scenario: str, stream: bool) -> None:
    asked = ask(fake, scenario, stream=stream)
    stop, calls = FINE[scenario]
    assert (asked.answer.stop, asked.executed) == (stop, calls)
    assert len({call.label for call in asked.answer.calls}) == len(calls)


@pytest.mark.parametrize("scenario", UNUSED)
def test_of_an_answer_that_is_not_whole_nothing_runs(fake: Fake, scenario: str, stream: bool) -> None:
    asked = ask(fake, scenario, stream=stream)
    stop, why = UNUSED[scenario]
    assert (asked.answer.stop, asked.executed) == (stop, [])
    with pytest.raises(Malformed, match=why):
        usable(asked.answer)


def test_every_scenario_is_played_by_a_test() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_openai*.py"))
    assert [name for name in SCENARIOS if f'"{name}"' not in text] == []


class TestText:
    def test_is_exact_however_its_bytes_are_cut(self, fake: Fake, stream: bool) -> None:
        asked = ask(fake, "odd_text", stream=stream)
        assert asked.answer.blocks[1] == {"type": "text", "text": ODD}
        assert "".join(asked.live) == ODD

    def test_is_never_passed_on_in_half_a_character(self, fake: Fake) -> None:
        asked = ask(fake, "split_pair")
        assert asked.live == ["a ", "🦊 b"]
        assert asked.answer.blocks[1]["text"] == "a 🦊 b"

    def test_that_is_empty_is_an_end_without_a_message_to_keep(self, fake: Fake, stream: bool) -> None:
        asked = ask(fake, "empty", stream=stream)
        assert (asked.answer.stop, asked.answer.blocks, asked.live) == ("end", [], [])

    def test_that_looks_like_a_call_is_none(self, fake: Fake) -> None:
        assert ask(fake, "tags_as_text").answer.calls == []

    def test_of_a_refusal_is_kept_for_the_record(self, fake: Fake, stream: bool) -> None:
        head = ask(fake, "refused", stream=stream).answer.blocks[0]
        assert head["message"]["refusal"] == "I can't help with that."


class TestIds:
    @pytest.mark.parametrize("scenario", ["no_ids", "missing_ids", "llama.cpp"])
    def test_that_are_not_there_are_given_by_turn_and_number(self, fake: Fake, scenario: str, stream: bool) -> None:
        labels = [call.label for call in ask(fake, scenario, stream=stream).answer.calls]
        assert labels == ["call_1_1", "call_1_2"]

    def test_that_are_repeated_are_given_anew_and_kept_as_received_beside(self, fake: Fake, stream: bool) -> None:
        found = ask(fake, "same_ids", stream=stream).answer
        assert [call.label for call in found.calls] == ["call_a", "call_1_2"]
        assert [block["call"]["id"] for block in found.blocks[2:]] == ["call_a", "call_a"]

    def test_of_the_server_are_used_where_they_can_be(self, fake: Fake, stream: bool) -> None:
        labels = [call.label for call in ask(fake, "two_calls", stream=stream).answer.calls]
        assert labels == ["call_a", "call_b"]


class TestUsage:
    def test_counts_each_token_once(self, fake: Fake, stream: bool) -> None:
        found = ask(fake, "two_calls", stream=stream).answer
        assert found.usage == EXACT
        assert (found.usage.prompt, found.tokens) == (120, 150)

    def test_that_comes_with_each_chunk_is_that_of_the_last(self, fake: Fake) -> None:
        assert ask(fake, "usage_on_each").answer.usage == EXACT

    @pytest.mark.parametrize("scenario", ["null_usage", "no_usage", "loose"])
    def test_that_is_missing_is_estimated_and_says_so(self, fake: Fake, scenario: str) -> None:
        usage = ask(fake, scenario).answer.usage
        assert not usage.complete
        assert usage.input > 100 and usage.output > 10

    def test_far_below_the_prompt_shows_that_the_server_cut_it(self, fake: Fake, stream: bool) -> None:
        long = [{"role": "user", "content": [{"type": "text", "text": "word " * 6000}]}]
        error = ask(fake, "short_window", long, stream=stream).error
        assert error.reason == "context_overflow"
        assert "2050 tokens of about 7" in error.detail
        assert error.usage is not None and error.usage.input == 2050
        assert isinstance(ask(fake, "short_window", stream=stream).result, Answer)


class TestARequest:
    def test_says_what_the_api_asks_for(self, fake: Fake) -> None:
        ask(fake, "text")
        body = fake.requests[0].body
        assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        assert (body["model"], body["max_completion_tokens"], body["stream"]) == ("fake-1", 500, True)
        assert body["stream_options"] == {"include_usage": True}
        assert body["tools"][0]["function"]["parameters"] == TOOLS[0]["input_schema"]
        assert body.keys() == {"model", "messages", "max_completion_tokens", "stream", "stream_options", "tools"}

    @pytest.mark.parametrize("dialect", sorted(DIALECTS))
    def test_of_each_dialect_is_taken_by_its_server(self, fake: Fake, dialect: str, stream: bool) -> None:
        asked = ask(fake, dialect, stream=stream, key=KEY if dialect == "openai" else "")
        assert asked.executed == BOTH

    @pytest.mark.parametrize("dialect", sorted(DIALECTS))
    def test_is_made_of_the_hosts_knobs(self, fake: Fake, dialect: str) -> None:
        knob = dialect.upper().replace(".", "_")
        provider = provider_for(
            f"{dialect}:fake-1", {}, {f"{knob}_BASE_URL": fake.url(dialect), f"{knob}_API_KEY": KEY}
        )
        request = Request(model=f"{dialect}:fake-1", system="", tools=TOOLS, messages=[HELLO], seconds=5)
        assert provider.complete(request, lambda delta: None, lambda: False).stop == "tool_use"
        assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"

    def test_to_a_local_server_limits_in_its_words(self, fake: Fake) -> None:
        ask(fake, "vllm")
        assert fake.requests[0].body["max_tokens"] == 500

    def test_with_tools_is_not_streamed_where_the_server_loses_calls_then(self, fake: Fake) -> None:
        assert ask(fake, "ollama", stream_tools=False).executed == BOTH
        assert fake.requests[0].body["stream"] is False

    def test_carries_further_fields_but_never_replaces_ours(self, fake: Fake) -> None:
        ask(fake, "vllm", extra={"chat_template_kwargs": {"enable_thinking": False}, "messages": []})
        body = fake.requests[0].body
        assert body["chat_template_kwargs"] == {"enable_thinking": False} and body["messages"]

    def test_goes_where_it_is_told_whatever_the_environment_says(
        self, fake: Fake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
            monkeypatch.setenv(name, "from-the-environment")
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert ask(fake, "call").executed == [WRITE]
        headers = fake.requests[0].headers
        assert headers["authorization"] == f"Bearer {KEY}"
        assert "from-the-environment" not in str(headers)
        assert not {"openai-organization", "openai-project"} & headers.keys()

    def test_changes_nothing_of_what_it_is_given(self, fake: Fake) -> None:
        history = [HELLO]
        request = Request(model="openai:fake-1", system="s", tools=TOOLS, messages=history)
        before = copy.deepcopy(request)
        provider = OpenAICompatible(replace(OPENAI, base_url=fake.url("two_calls")), KEY)
        provider.complete(request, lambda delta: None, lambda: False).blocks.clear()
        assert request == before

    def test_that_cannot_be_sent_as_text_is_sent_with_a_sign_for_it(self, fake: Fake) -> None:
        odd = [{"role": "user", "content": [{"type": "text", "text": "half \ud83e of it"}]}]
        assert ask(fake, "text", odd).answer.stop == "end"
        assert fake.requests[0].body["messages"][1]["content"] == "half ? of it"

    def test_for_a_vendors_own_tools_is_not_sent(self, fake: Fake) -> None:
        request = Request(model="x:y", system="", tools=[], messages=[HELLO], server_tools=("web_search_20260318",))
        with pytest.raises(ProviderError, match="no tools of their own"):
            OpenAICompatible(VLLM).complete(request, lambda delta: None, lambda: False)


class TestReasoning:
    @pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
    def test_is_kept_and_not_sent_again_unless_asked_for(self, fake: Fake, field: str, stream: bool) -> None:
        found = ask(fake, field, stream=stream).answer
        assert found.blocks[0]["message"][field] == "The user wants a file."
        history = answered([HELLO], found)
        ask(fake, field, history)
        ask(fake, field, history, dropped=())
        without, with_it = (seen.body["messages"][2] for seen in fake.of(field)[1:])
        assert field not in without and with_it[field] == "The user wants a file."


class TestAnEnd:
    @pytest.mark.parametrize("scenario", ["forever", "pings", "silence"])
    def test_comes_at_the_deadline_however_much_trickles_in(self, fake: Fake, scenario: str) -> None:
        began = time.monotonic()
        error = ask(fake, scenario, seconds=0.4).error
        assert error.reason == "deadline"
        assert 0.3 < time.monotonic() - began < 2
        assert error.usage is not None and not error.usage.complete

    def test_by_cancelling_closes_the_stream_and_keeps_what_came(self, fake: Fake) -> None:
        live: list[str] = []
        error = ask(fake, "forever", live=live, cancelled=lambda: len(live) > 2).error
        assert error.reason == "cancelled"
        assert error.blocks[0]["message"]["content"].startswith("word 0 word 1 word 2 ")
        assert fake.left.wait(3), "the server was not left"
        assert len(fake.requests) == 1

    def test_by_closing_the_provider_ends_what_is_in_the_air(self, fake: Fake) -> None:
        provider = OpenAICompatible(replace(OPENAI, base_url=fake.url("forever")), KEY)
        request = Request(model="x:y", system="", tools=[], messages=[HELLO], seconds=5)
        with pytest.raises(ProviderError, match="cancelled"):
            provider.complete(request, lambda delta: provider.close(), lambda: False)
