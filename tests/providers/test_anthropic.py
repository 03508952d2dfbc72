"""The Messages API through its real SDK, against a server that speaks its wire and goes wrong in all of its ways.

What may run of an answer is asked of `proposals`, the one door through which the runner takes calls.
"""

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.engine.canonical import strict_loads
from runs.engine.messages import Malformed, Proposal, proposals
from runs.providers import provider_for
from runs.providers.anthropic import Anthropic, strictly
from runs.providers.base import Answer, Kind, ProviderError, Request, Usage
from runs.providers.history import InvalidHistory, check_history
from tests.fakes.anthropic import KEY, Fake, running
from tests.fakes.anthropic_rules import check
from tests.fakes.anthropic_wire import ODD, SCENARIOS, call, events_of, frames_of, text

Json = dict[str, Any]
SEARCH = ("web_search_20260318",)


def tool(name: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"name": name, "description": "A tool.", "input_schema": schema}


TOOLS = [tool("get_order", order_id={"type": "string"}), tool("write", path={"type": "string", "maxLength": 9})]
HELLO = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


@pytest.fixture(scope="module")
def fake() -> Iterator[Fake]:
    with running() as server:
        yield server
        assert server.strange == []


def ask(
    fake: Fake,
    scenario: str,
    messages: list[Json] | None = None,
    stream: bool = True,
    fresh: bool = True,
    on_delta: Callable[[str], None] = lambda delta: None,
    cancelled: Callable[[], bool] = lambda: False,
    key: str = KEY,
    **more: Any,
) -> Answer:
    if fresh:
        fake.hits[scenario] = 0
    given = {"seconds": 10.0, "system": "Be brief.", "tools": TOOLS} | more
    request = Request(model="anthropic:fake-1", messages=messages or HELLO, **given)
    before = copy.deepcopy(request)
    try:
        return Anthropic(key, fake.url(scenario), stream=stream).complete(request, on_delta, cancelled)
    finally:
        assert request == before, "an adapter changes nothing of what it is given"


def failed(fake: Fake, scenario: str, **more: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(fake, scenario, **more)
    assert KEY not in str(caught.value) + caught.value.detail + caught.value.reason
    assert len(caught.value.detail) <= 300 and len(str(caught.value)) <= 300
    return caught.value


def usable(answer: Answer) -> list[Proposal]:
    """The calls that the runner would go on to judge."""
    return proposals(answer.calls, answer.stop, set()) if answer.blocks else []


def unusable(answer: Answer) -> str:
    with pytest.raises(Malformed) as caught:
        proposals(answer.calls, answer.stop, set())
    return str(caught.value)


def replayed(answer: Answer, *more: Json) -> list[Json]:
    """The conversation after the answer, each call with a result."""
    results = [{"type": "tool_result", "tool_use_id": c.label, "content": "{}"} for c in answer.calls]
    return [
        *HELLO, {"role": "assistant", "content": answer.blocks}, {"role": "user", "content": [*results, *more]},
    ]  # fmt: skip


def last_asked(fake: Fake) -> Json:
    return fake.asked[-1][2]


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


both = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


class TestAnAnswer:
    @both
    def test_of_text_is_an_end_with_exact_counts(self, fake: Fake, stream: bool) -> None:
        answer = ask(fake, "v01_text", stream=stream)
        assert (answer.stop, answer.wire_stop, answer.blocks) == ("end", "end_turn", [text("Hello there.")])
        assert answer.usage == Usage(input=25, output=77)
        assert (answer.tokens, answer.model, answer.request_id) == (102, "fake-1", "req_fake_1")

    @both
    def test_that_calls_a_tool_carries_its_arguments(self, fake: Fake, stream: bool) -> None:
        answer = ask(fake, "v02_call", stream=stream)
        (wish,) = usable(answer)
        assert (wish.label, wish.tool, strict_loads(wish.arguments)) == ("toolu_1", "get_order", {"order_id": "O-1042"})
        assert answer.blocks[0]["input"] == {"order_id": "O-1042"}

    def test_keeps_the_text_of_arguments_letter_by_letter(self, fake: Fake) -> None:
        assert ask(fake, "v02_call").calls[0].arguments == '{"order_id": "O-1042"}'

    @both
    def test_with_a_call_without_arguments_gives_it_none(self, fake: Fake, stream: bool) -> None:
        assert [w.arguments for w in usable(ask(fake, "v03_no_deltas", stream=stream))][1] == "{}"

    @pytest.mark.parametrize("scenario", ["v03_no_deltas", "v05_thinking", "v20_direct"])
    def test_goes_back_as_it_came(self, fake: Fake, scenario: str) -> None:
        answer = ask(fake, scenario)
        stored = json.loads(json.dumps(answer.blocks))
        assert ask(fake, scenario, replayed(answer), fresh=False).stop == "end"
        assert last_asked(fake)["messages"][1]["content"] == stored

    def test_keeps_thinking_whole_and_signed(self, fake: Fake) -> None:
        blocks = ask(fake, "v05_thinking").blocks
        assert [b["type"] for b in blocks] == ["thinking", "redacted_thinking", "tool_use"]
        assert blocks[0]["thinking"] == "Let me see." and "." in blocks[0]["signature"]
        assert blocks[1] == {"type": "redacted_thinking", "data": "Eo0B=="}

    def test_whose_thinking_was_touched_is_refused_by_the_server_and_not_mended(self, fake: Fake) -> None:
        answer = ask(fake, "v05_thinking")
        answer.blocks[0]["thinking"] += "!"
        error = failed(fake, "v05_thinking", messages=replayed(answer), fresh=False)
        assert error.kind == Kind.INVALID_REQUEST and "Invalid `signature`" in error.detail

    def test_with_text_between_calls_keeps_their_order(self, fake: Fake) -> None:
        answer = ask(fake, "v04_text_between")
        assert [b["type"] for b in answer.blocks] == ["text", "tool_use", "text", "tool_use"]
        assert len(usable(answer)) == 2

    @pytest.mark.parametrize("scenario", ["v32_bytes", "v32_escapes"])
    def test_of_odd_characters_in_odd_pieces_is_exact(self, fake: Fake, scenario: str) -> None:
        said: list[str] = []
        assert ask(fake, scenario, on_delta=said.append).blocks == [text(ODD)]
        assert "".join(said) == ODD

    @both
    def test_whose_pieces_split_a_character_is_put_together(self, fake: Fake, stream: bool) -> None:
        answer = ask(fake, "v32_split_pair", stream=stream)
        assert answer.blocks[0]["text"] == "🙂" and answer.blocks[1]["input"] == {"a": "🙂"}
        assert strict_loads(answer.calls[0].arguments) == {"a": "🙂"}

    def test_does_not_need_the_names_of_events(self, fake: Fake) -> None:
        assert ask(fake, "v32_unnamed").stop == "end"

    def test_with_an_unknown_event_is_read_past_it(self, fake: Fake) -> None:
        assert ask(fake, "v23_unknown_event").blocks == [text("Hi")]

    def test_keeps_citations(self, fake: Fake) -> None:
        assert ask(fake, "cited").blocks[0]["citations"] == [{"type": "char_location", "cited_text": "c"}]

    @both
    def test_without_content_is_an_empty_end(self, fake: Fake, stream: bool) -> None:
        answer = ask(fake, "v17_empty", stream=stream)
        assert (answer.stop, answer.blocks) == ("end", [])

    def test_at_a_stop_sequence_is_an_end(self, fake: Fake) -> None:
        answer = ask(fake, "stop_sequence")
        assert (answer.stop, answer.wire_stop) == ("end", "stop_sequence")

    @both
    def test_counts_what_the_cache_took_and_gave(self, fake: Fake, stream: bool) -> None:
        usage = ask(fake, "cached", stream=stream).usage
        assert usage == Usage(
            input=25, output=77, cache_read=900, cache_write_5m=200, cache_write_1h=100, thinking=40, searches=2
        )
        assert usage.prompt == 1225 and round(usage.hit_rate, 2) == 0.73

    def test_keeps_counts_that_a_later_event_leaves_open(self, fake: Fake) -> None:
        assert ask(fake, "late_counts").usage == Usage(input=25, output=77)


NOTHING_RUNS = {
    "v06_cut_call": "truncated", "v07_cut_number": "truncated", "v08_cut_before_deltas": "truncated",
    "v09_second_cut": "truncated", "v10_not_json": "tool_use", "v11_trailing": "tool_use", "v13_list": "tool_use",
    "v13_string": "tool_use", "v13_null": "tool_use", "v14_same_id": "tool_use", "v20_mcp_call": "unknown",
    "v20_caller": "unknown", "v21_refusal_with_call": "refusal", "v22_future": "unknown", "v22_null": "unknown",
    "v22_no_calls": "unknown", "v22_calls_and_end": "end", "v33_window": "context_full",
    "v18_pause_with_call": "unknown", "v20_server_call": "unknown",
}  # fmt: skip


class TestNothingRuns:
    @both
    @pytest.mark.parametrize(("scenario", "stop"), NOTHING_RUNS.items(), ids=NOTHING_RUNS)
    def test_of_an_answer_that_was_cut_or_is_odd(self, fake: Fake, scenario: str, stop: str, stream: bool) -> None:
        answer = ask(fake, scenario, stream=stream)
        assert answer.stop == stop and answer.blocks
        assert unusable(answer)

    @pytest.mark.parametrize("scenario", ["v12_twice", "v12_nan"])
    def test_whose_arguments_two_parsers_would_read_differently(self, fake: Fake, scenario: str) -> None:
        assert unusable(ask(fake, scenario)) == "unparsable arguments"
        assert failed(fake, scenario, stream=False).kind == Kind.MALFORMED

    def test_but_what_was_cut_is_kept_for_the_record(self, fake: Fake) -> None:
        assert ask(fake, "v06_cut_call").blocks[0]["input"] == '{"path":"a.txt","content":"li'
        assert ask(fake, "v22_future").blocks[0] == {"type": "future_block", "x": {"y": [1]}}

    def test_of_a_refusal_which_says_why(self, fake: Fake) -> None:
        answer = ask(fake, "v21_refusal")
        assert (answer.stop, answer.detail, answer.blocks) == ("refusal", "cyber: not that", [text("Part")])

    def test_of_a_block_with_an_unknown_delta(self, fake: Fake) -> None:
        error = failed(fake, "v23_unknown_delta")
        assert error.kind == Kind.MALFORMED and error.reason.startswith("malformed:") and "future_delta" in error.detail

    def test_but_what_the_host_must_answer_gets_through_to_it(self, fake: Fake) -> None:
        assert usable(ask(fake, "v15_unknown_tool"))[0].tool == "launch_rocket"
        assert usable(ask(fake, "v16_schema"))[0].arguments == '{"order_id": 7, "extra": true}'


class TestAPausedTurn:
    def test_goes_on_with_what_came_and_nothing_else(self, fake: Fake) -> None:
        fake.asked.clear()
        answer = ask(fake, "v18_pauses", server_tools=SEARCH)
        types = ["text", "server_tool_use", "web_search_tool_result", "text", "text"]
        assert (answer.stop, [b["type"] for b in answer.blocks], answer.requests) == ("end", types, 3)
        assert answer.usage == Usage(input=75, output=231)
        first, second, third = (asked[2]["messages"] for asked in fake.asked)
        assert unmarked(first) == unmarked(second[:-1]) == unmarked(third[:-1]) == HELLO
        assert third[-1] == {"role": "assistant", "content": answer.blocks[:4]}

    def test_does_so_ten_times_at_most(self, fake: Fake) -> None:
        error = failed(fake, "v19_endless_pause", server_tools=SEARCH)
        assert error.kind == Kind.MALFORMED and fake.hits["v19_endless_pause"] == 11
        assert error.usage == Usage(input=275, output=847)

    def test_keeps_what_it_cost_when_it_breaks(self, fake: Fake) -> None:
        error = failed(fake, "v18_pause_broken", server_tools=SEARCH)
        assert error.kind == Kind.NETWORK and len(error.blocks) == 3
        assert error.usage == Usage(input=50, output=78, complete=False)

    def test_may_end_in_a_refusal(self, fake: Fake) -> None:
        assert ask(fake, "v18_pause_refused", server_tools=SEARCH).stop == "refusal"


class TestToolsThatTheVendorRuns:
    def test_are_offered_only_when_named(self, fake: Fake) -> None:
        ask(fake, "v01_text")
        assert [t.get("type") for t in last_asked(fake)["tools"]] == [None, None]
        ask(fake, "v01_text", server_tools=SEARCH)
        assert last_asked(fake)["tools"][-1]["type"] == "web_search_20260318"
        assert last_asked(fake)["tools"][-1]["name"] == "web_search"

    def test_are_reported_and_never_proposed(self, fake: Fake) -> None:
        answer = ask(fake, "v20_server_call", server_tools=SEARCH)
        assert [w.tool for w in usable(answer)] == ["write"] and answer.vendor_ran == ("web_search",)
        assert answer.blocks[0]["input"] == {"query": "x"}

    def test_that_nobody_asked_for_spoil_the_answer(self, fake: Fake) -> None:
        answer = ask(fake, "v20_server_call")
        assert "unasked" in answer.detail and unusable(answer)

    def test_may_call_ours_only_if_they_were_named(self, fake: Fake) -> None:
        answer = ask(fake, "v20_caller", server_tools=("code_execution_20260521",))
        assert len(usable(answer)) == 1 and answer.callers == {"toolu_w": "code_execution_20260521"}
        assert answer.blocks[0]["caller"]["tool_id"] == "s"

    def test_are_refused_by_names_without_a_date(self, fake: Fake) -> None:
        assert failed(fake, "v01_text", server_tools=("web_search",)).kind == Kind.INVALID_REQUEST


ERRORS = {
    "v24_rate_limited": (Kind.RATE_LIMITED, 0.2), "v25_long_wait": (Kind.RATE_LIMITED, 3600.0),
    "v25_wait_ms": (Kind.RATE_LIMITED, 1.5), "v25_wait_date": (Kind.SERVER, 0.0),
    "v25_wait_nonsense": (Kind.RATE_LIMITED, 0.0), "v26_spent": (Kind.BILLING, 5.0), "v26_limits": (Kind.BILLING, 0.0),
    "v26_billing": (Kind.BILLING, 0.0), "v27_overloaded": (Kind.OVERLOADED, 3.0), "bad_key": (Kind.AUTH, 0.0),
    "forbidden": (Kind.AUTH, 0.0), "no_such_model": (Kind.INVALID_REQUEST, 0.0), "server_error": (Kind.SERVER, 0.0),
    "v33_too_long": (Kind.CONTEXT_OVERFLOW, 0.0), "v33_413": (Kind.CONTEXT_OVERFLOW, 0.0),
    "v32_half_character": (Kind.MALFORMED, 0.0),
    "v34_html": (Kind.MALFORMED, 0.0), "v34_object": (Kind.MALFORMED, 0.0), "v34_cut_json": (Kind.MALFORMED, 0.0),
    "v34_gateway": (Kind.SERVER, 0.0), "moved": (Kind.INVALID_REQUEST, 0.0),
}  # fmt: skip
BROKEN = {
    "v28_error_event": (Kind.OVERLOADED, 1), "v28_rate_event": (Kind.RATE_LIMITED, 0),
    "v28_odd_event": (Kind.SERVER, 0),
    "v29_reset": (Kind.NETWORK, 2), "v30_cut_chunked": (Kind.NETWORK, 2), "v30_eof": (Kind.NETWORK, 2),
    "v30_eof_at_once": (Kind.NETWORK, 0), "v30_nothing": (Kind.NETWORK, 0), "v34_bad_frame": (Kind.MALFORMED, 1),
}  # fmt: skip


class TestAnError:
    @both
    @pytest.mark.parametrize(("scenario", "expected"), ERRORS.items(), ids=ERRORS)
    def test_is_told_by_kind_with_a_bounded_wait(
        self, fake: Fake, scenario: str, expected: tuple[Kind, float], stream: bool
    ) -> None:
        error = failed(fake, scenario, stream=stream)
        assert (error.kind, error.retry_after) == expected
        assert fake.hits[scenario] == 1, "trying again is the runner's, which records it"

    @pytest.mark.parametrize(("scenario", "expected"), BROKEN.items(), ids=BROKEN)
    def test_in_the_middle_of_a_stream_keeps_what_came(
        self, fake: Fake, scenario: str, expected: tuple[Kind, int]
    ) -> None:
        error = failed(fake, scenario)
        assert (error.kind, len(error.blocks)) == expected
        assert error.usage is not None and not error.usage.complete

    def test_of_an_account_is_never_tried_again(self, fake: Fake) -> None:
        reasons = {name: failed(fake, name).reason for name in ("bad_key", "v26_spent", "v26_billing")}
        assert reasons == {"bad_key": "auth", "v26_spent": "billing", "v26_billing": "billing"}

    def test_ends_after_the_wait_that_the_server_asked_for(self, fake: Fake) -> None:
        fake.hits["v24_rate_limited"] = 0
        waits = [failed(fake, "v24_rate_limited", fresh=False).retry_after for _ in range(2)]
        assert waits == [0.2, 0.2] and ask(fake, "v24_rate_limited", fresh=False).stop == "end"

    def test_never_shows_the_key_that_it_quotes(self, fake: Fake) -> None:
        wrong = "sk-ant-wrong-0123456789abcdefghij"
        error = failed(fake, "v01_text", key=wrong)
        assert error.kind == Kind.AUTH and "wrong" not in str(error) + error.detail

    def test_of_a_server_that_is_not_there_is_the_networks(self) -> None:
        with pytest.raises(ProviderError) as caught:
            Anthropic(KEY, "http://127.0.0.1:9").complete(
                Request(model="anthropic:x", system="", tools=[], messages=HELLO), print, lambda: False
            )
        assert (caught.value.kind, caught.value.reason) == (Kind.NETWORK, "network")

    def test_of_a_missing_key_is_told_before_anything_is_sent(self) -> None:
        with pytest.raises(ProviderError) as caught:
            provider_for("anthropic:x", {}).complete(
                Request(model="anthropic:x", system="", tools=[], messages=HELLO), print, lambda: False
            )
        assert caught.value.reason == "auth" and "ANTHROPIC_API_KEY" in caught.value.detail


class TestTime:
    @pytest.mark.parametrize("scenario", ["v31_pings", "v31_stall", "v31_silence"])
    def test_is_over_at_the_deadline_whatever_trickles_in(self, fake: Fake, scenario: str) -> None:
        began = time.monotonic()
        error = failed(fake, scenario, seconds=0.4)
        assert error.kind == Kind.DEADLINE and error.usage is not None and not error.usage.complete
        assert time.monotonic() - began < 1.5

    @pytest.mark.parametrize(
        ("scenario", "stream"),
        [("v31_pings", True), ("v31_stall", True), ("v31_silence", True), ("v31_silence", False)],
    )
    def test_of_a_cancelled_request_is_over_at_once(self, fake: Fake, scenario: str, stream: bool) -> None:
        began = time.monotonic()
        stop = began + 0.3
        error = failed(fake, scenario, cancelled=lambda: time.monotonic() > stop, stream=stream)
        assert error.kind == Kind.CANCELLED and time.monotonic() - stop < 1.0

    def test_ends_the_connection_too(self, fake: Fake) -> None:
        fake.gone.clear()
        said: list[str] = []
        failed(fake, "v31_stall", on_delta=said.append, cancelled=lambda: bool(said))
        until = time.monotonic() + 5
        while "v31_stall" not in fake.gone and time.monotonic() < until:
            time.sleep(0.01)
        assert "v31_stall" in fake.gone and said

    def test_is_over_for_all_when_the_provider_is_closed(self, fake: Fake) -> None:
        provider = Anthropic(KEY, fake.url("v31_pings"))
        threading.Timer(0.2, provider.close).start()
        with pytest.raises(ProviderError) as caught:
            provider.complete(Request(model="anthropic:x", system="", tools=[], messages=HELLO), str, lambda: False)
        assert caught.value.kind == Kind.CANCELLED


class TestARequest:
    def test_marks_its_lasting_parts_for_the_cache(self, fake: Fake) -> None:
        answer = ask(fake, "v03_no_deltas")
        ask(fake, "v03_no_deltas", replayed(answer, text("A note.")), fresh=False)
        body = last_asked(fake)
        assert [("cache_control" in t) for t in body["tools"]] == [False, True]
        assert "cache_control" in body["system"][0]
        marks = [["cache_control" in b for b in m["content"]] for m in body["messages"]]
        assert marks == [[True], [False, False], [False, False, True]]

    def test_binds_arguments_to_a_grammar_where_the_schema_allows_it(self, fake: Fake) -> None:
        ask(fake, "v01_text")
        assert [t.get("strict", False) for t in last_asked(fake)["tools"]] == [True, False]

    @pytest.mark.parametrize(
        ("schema", "fits"),
        [
            ({"type": "object", "properties": {}, "additionalProperties": False}, True),
            ({"type": "object", "properties": {}}, False),
            ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, False),
            ({"type": "string", "pattern": "^[A-Z]{1,3}$"}, True),
            ({"type": "string", "pattern": r"^(?!x)\bx"}, False),
            ({"type": "array", "items": {"type": "integer"}}, True),
            ({"type": "array", "items": {"type": "integer", "minimum": 1}}, False),
            ({"type": "array"}, False),
            ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
            (True, False),
        ],
    )
    def test_knows_which_schemas_those_are(self, schema: Any, fits: bool) -> None:
        assert strictly(schema) is fits

    def test_names_the_model_and_passes_on_what_it_is_told(self, fake: Fake) -> None:
        ask(fake, "v01_text", max_tokens=64_000, effort="high", thinking="adaptive", container="c1")
        body, headers = last_asked(fake), fake.asked[-1][1]
        assert (body["model"], body["max_tokens"], body["container"]) == ("fake-1", 64_000, "c1")
        assert body["output_config"] == {"effort": "high"} and body["thinking"] == {"type": "adaptive"}
        assert headers["x-stainless-retry-count"] == "0"
        ask(fake, "v01_text", system="", tools=[])
        assert {"system", "tools", "thinking", "container"}.isdisjoint(last_asked(fake))

    def test_of_a_megabyte_is_sent_whole(self, fake: Fake) -> None:
        answer = ask(fake, "v02_call")
        messages = replayed(answer)
        messages[-1]["content"][0]["content"] = "ä" * 500_000
        ask(fake, "v35_large", messages)
        assert last_asked(fake)["messages"][-1]["content"][0]["content"] == "ä" * 500_000

    def test_that_cannot_be_written_as_utf8_is_refused_here(self, fake: Fake) -> None:
        lone = [{"role": "user", "content": [{"type": "text", "text": "\ud800"}]}]
        assert failed(fake, "v01_text", messages=lone).kind == Kind.INVALID_REQUEST


# --- properties -------------------------------------------------------------------------------------------------------
CUTTABLE = [name for name, replies in SCENARIOS.items() if replies[0].body is None and not replies[0].wait]
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(st.sampled_from(CUTTABLE), st.floats(0, 1), st.sampled_from(["cut", "eof", "reset"]), st.sampled_from([0, 40]))
def test_a_stream_that_is_cut_anywhere_is_no_answer(
    fake: Fake, scenario: str, share: float, ending: str, chunk: int
) -> None:
    whole = replace(SCENARIOS[scenario][0], ending=ending, chunk=chunk)
    size = len(b"".join(frames_of(whole, events_of(whole))))
    last = len('"}\r\n\r\n')  # without these, the JSON of the last event has no end
    fake.scenarios["cut"] = [replace(whole, bytes=int(share * (size - last)))]
    error = failed(fake, "cut", server_tools=SEARCH)
    assert error.kind not in (Kind.AUTH, Kind.BILLING, Kind.INVALID_REQUEST, Kind.CANCELLED, Kind.DEADLINE)


TURNS = st.lists(st.integers(0, 3), min_size=1, max_size=5)


def conversation(turns: list[int]) -> list[Json]:
    """A valid history: each turn a text and so many calls, then their results."""
    messages = copy.deepcopy(HELLO)
    for number, calls in enumerate(turns):
        idents = [f"toolu_{number}_{i}" for i in range(calls)]
        said = [text(f"Turn {number}"), *({**call(i, "get_order"), "input": {}} for i in idents)]
        for block in said:
            block.pop("fragments", None)
        heard = [{"type": "tool_result", "tool_use_id": i, "content": "{}"} for i in idents] or [text("Go on.")]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": heard}]
    return messages


def body(messages: list[Json]) -> Json:
    return {"model": "m", "max_tokens": 1, "messages": messages}


@QUICK
@given(TURNS, st.sampled_from(["delete", "double", "swap"]), st.booleans(), st.data())
def test_a_history_with_something_lost_doubled_or_moved_is_refused_before_it_is_sent(
    fake: Fake, turns: list[int], how: str, inside: bool, data: st.DataObject
) -> None:
    messages = conversation(turns)
    check_history(messages)
    check(body(messages))
    places = [[b for b in m["content"] if b["type"] != "text"] for m in messages] if inside else [messages]
    among = data.draw(st.sampled_from([place for place in places if len(place) > (how == "swap")] or [messages]))
    index = data.draw(st.integers(0, len(among) - 1))
    if among is not messages:  # calls or results, which stand behind the text of their message
        content = next(m["content"] for m in messages if among[0] in m["content"])
        index, among = content.index(among[index]), content
    if how == "delete":
        del among[index]
    elif how == "double":
        among.insert(index, among[index])
    else:
        other = index + 1 if index + 1 < len(among) else index - 1
        among[index], among[other] = among[other], among[index]
    sent = len(fake.asked)
    with pytest.raises(InvalidHistory):
        ask(fake, "v01_text", messages)
    assert len(fake.asked) == sent


BLOCKS = st.one_of(
    st.builds(text, st.sampled_from(["", "x"])),
    st.builds(lambda i, v: {"type": "tool_use", "id": i, "name": "f", "input": v}, st.sampled_from("ab"), st.just({})),
    st.builds(lambda i: {"type": "tool_result", "tool_use_id": i, "content": "{}"}, st.sampled_from("ab")),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, max_size=3)), max_size=4))
def test_whatever_is_taken_here_the_real_rules_take_too(said: list[tuple[str, list[Json]]]) -> None:
    messages = [{"role": role, "content": content} for role, content in said]
    try:
        check_history(messages)
    except InvalidHistory:
        return
    check(body(messages))
