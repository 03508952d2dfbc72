"""What goes wrong between us and a server of chat completions: named by its kind, never with the key, never run."""

import logging
import socket
import traceback
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runs.providers.base import Answer, Kind, ProviderError, Request
from runs.providers.openai_compatible import OPENAI, OpenAICompatible
from tests.fakes.openai import SCENARIOS, answer
from tests.fakes.openai_asking import HELLO, ask
from tests.fakes.openai_strict import KEY
from tests.fakes.openai_wire import Fake

# scenario -> kind, and a piece of what is said
FAILS = {
    "limited": (Kind.RATE_LIMITED, "Rate limit"),
    "limited_long": (Kind.RATE_LIMITED, "Rate limit"),
    "limited_ms": (Kind.RATE_LIMITED, "Rate limit"),
    "limited_oddly": (Kind.RATE_LIMITED, "Rate limit"),
    "no_quota": (Kind.BILLING, "current quota"),
    "unpaid": (Kind.BILLING, "Payment"),
    "forbidden": (Kind.AUTH, "not supported"),
    "echo_key": (Kind.AUTH, "Incorrect"),
    "loading": (Kind.OVERLOADED, "Loading model"),
    "error_frame": (Kind.OVERLOADED, "Loading model"),
    "overloaded_200": (Kind.OVERLOADED, "busy"),
    "broken": (Kind.SERVER, "Internal Server Error"),
    "bad_gateway": (Kind.SERVER, ""),
    "no_jinja": (Kind.SERVER, "--jinja"),
    "error_event": (Kind.SERVER, "out of memory"),
    "error_in_words": (Kind.SERVER, "system memory"),
    "not_found": (Kind.INVALID_REQUEST, "does not exist"),
    "moved": (Kind.INVALID_REQUEST, ""),
    "too_long": (Kind.CONTEXT_OVERFLOW, "4096"),
    "too_long_vllm": (Kind.CONTEXT_OVERFLOW, "4096"),
    "too_long_llama": (Kind.CONTEXT_OVERFLOW, "context size"),
    "too_large": (Kind.CONTEXT_OVERFLOW, ""),
    "cut": (Kind.NETWORK, "closed"),
    "closed": (Kind.NETWORK, "cut"),
    "reset": (Kind.NETWORK, "reset"),
    "done_without_end": (Kind.NETWORK, "before its answer"),
    "html": (Kind.MALFORMED, "not JSON"),
    "nothing": (Kind.MALFORMED, "one choice"),
    "no_choices": (Kind.MALFORMED, "one choice"),
    "cut_json": (Kind.MALFORMED, "not JSON"),
    "error_200": (Kind.MALFORMED, "something broke"),
    "bad_chunk": (Kind.MALFORMED, "not JSON"),
    "chunk_of_text": (Kind.MALFORMED, "no object"),
    "two_choices": (Kind.MALFORMED, "no piece"),
    "after_the_end": (Kind.MALFORMED, "after its end"),
    "another_name": (Kind.MALFORMED, "changes its name"),
    "function_call": (Kind.MALFORMED, ""),
    "calls_without_calls": (Kind.MALFORMED, "without calls"),
}


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake(answer) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("scenario", FAILS)
def test_a_failure_is_named_by_its_kind(fake: Fake, scenario: str, stream: bool) -> None:
    asked = ask(fake, scenario, stream=stream)
    kind, said = FAILS[scenario]
    assert asked.error.kind == kind
    assert said in asked.error.detail
    assert asked.executed == []
    assert len(fake.requests) == 1, "the SDK asked again by itself"


class TestAWait:
    @pytest.mark.parametrize(
        ("scenario", "seconds"), [("limited", 0.2), ("limited_long", 3600), ("limited_ms", 1.5), ("limited_oddly", 0)]
    )
    def test_is_what_the_server_asks_for_within_an_hour(self, fake: Fake, scenario: str, seconds: float) -> None:
        assert ask(fake, scenario).error.retry_after == seconds

    def test_is_over_when_it_is_over(self, fake: Fake) -> None:
        assert [ask(fake, "limited").error.reason for _ in range(2)] == ["rate_limited"] * 2
        assert ask(fake, "limited").answer.stop == "end"


class TestAKey:
    @pytest.mark.parametrize("key", ["", "sk-wrong-0123456789abcdefghijklmnopqrstuvwxyz", "line\nbreak", "schlüssel"])
    def test_that_is_none_is_never_asked_with_again(self, fake: Fake, key: str) -> None:
        error = ask(fake, "text", key=key).error
        assert (error.reason, error.kind) == ("auth", Kind.AUTH)
        assert not key or (key not in str(error) and key[:12] not in str(error))

    @pytest.mark.parametrize("scenario", sorted(SCENARIOS))
    def test_is_in_no_error_and_no_log(self, fake: Fake, scenario: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        result = ask(fake, scenario, seconds=0.3).result
        told = repr(vars(result))
        if isinstance(result, ProviderError):
            told += "".join(traceback.format_exception(result))
            assert result.__cause__ is None
        assert KEY not in told + caplog.text
        assert KEY[:12] not in told

    def test_of_a_local_server_need_not_be_given(self, fake: Fake) -> None:
        assert ask(fake, "vllm", key="").answer.stop == "tool_use"
        assert fake.requests[0].headers["authorization"] == "Bearer local"


class TestASlowOrAbsentServer:
    def test_is_a_matter_of_the_network(self) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))  # bound, and nobody listens
            dialect = replace(OPENAI, base_url=f"http://127.0.0.1:{held.getsockname()[1]}/v1")
            request = Request(model="openai:x", system="", tools=[], messages=[HELLO], seconds=5)
            with pytest.raises(ProviderError) as caught:
                OpenAICompatible(dialect, KEY).complete(request, lambda delta: None, lambda: False)
        assert (caught.value.kind, caught.value.usage) == (Kind.NETWORK, None)


class TestAStreamWithoutItsLastWord:
    @pytest.mark.parametrize("scenario", ["no_done", "no_done_closed"])
    def test_is_cut_unless_the_server_is_known_for_it(self, fake: Fake, scenario: str) -> None:
        error = ask(fake, scenario).error
        assert (error.reason, error.blocks[0]["partial"]) == ("network", True)
        assert len(ask(fake, scenario, needs_done=False).executed) == 2

    def test_is_cut_in_any_case_if_its_end_was_not_named(self, fake: Fake) -> None:
        assert ask(fake, "closed", needs_done=False).error.reason == "network"
        assert ask(fake, "no_end").error.reason == "network"
        assert ask(fake, "no_end", stream=False).error.kind == Kind.MALFORMED


class TestWhatIsBilled:
    def test_of_an_error_before_any_answer_is_nothing(self, fake: Fake) -> None:
        assert ask(fake, "loading").error.usage is None

    def test_of_a_stream_that_broke_is_estimated(self, fake: Fake) -> None:
        usage = ask(fake, "reset").error.usage
        assert usage is not None and usage.output > 10 and not usage.complete

    def test_of_an_answer_that_was_no_use_is_counted(self, fake: Fake, stream: bool) -> None:
        usage = ask(fake, "calls_without_calls", stream=stream).error.usage
        assert usage is not None and usage.complete and usage.prompt == 120


def test_a_refused_request_says_so_in_the_servers_words(fake: Fake) -> None:
    error = ask(fake, "text", cap="max_tokens").error
    assert (error.kind, error.status) == (Kind.INVALID_REQUEST, 400)
    assert "Use 'max_completion_tokens' instead" in error.detail
    assert error.request_id == "req_fake"
    assert not isinstance(error, Answer)
