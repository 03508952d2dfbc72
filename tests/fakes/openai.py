"""A server that speaks chat completions as OpenAI, vLLM, Ollama and llama.cpp do, with their faults, on loopback.

By hand: ``python -m tests.fakes.openai --scenario two_calls --port 8123``, then base URL ``http://127.0.0.1:8123/v1``;
``--list`` names the scenarios. Each streams where the request asks for a stream. A request that ends with tool results
is answered with a text, so that every scenario with calls is a conversation. What the real servers refuse is refused.
"""

import argparse
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fakes.openai_strict import KEY, refusal
from tests.fakes.openai_wire import Fake, Json, Reply, Seen, as_events, as_json, frame

Play = Callable[[Seen, int], Reply]
USAGE = {
    "prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 7},
}  # fmt: skip
PATH = '{"path": "a.txt", "n": 1}'
ODD = "Grüße 🦊\u2028 ,\u200b\tend"


@dataclass(frozen=True, kw_only=True)
class Said:
    """A completion. `calls`: (id, name, arguments) each; `more`: further fields of the message."""

    content: str | None = None
    calls: tuple[tuple[Any, str, Any], ...] = ()
    finish: str | None = "stop"
    usage: Json | None = field(default_factory=lambda: dict(USAGE))
    more: Json = field(default_factory=dict)

    def whole(self) -> Json:
        """The body of a response that is not streamed."""
        calls = [_call(ident, name, arguments) for ident, name, arguments in self.calls]
        message: Json = {"role": "assistant", "content": self.content, **self.more}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return _envelope("chat.completion") | {"choices": [choice], "usage": self.usage}

    def chunks(self, size: int = 7, index: str = "own", repeat: bool = False, counted: str = "last") -> list[Json]:
        """The chunks of a stream: text and arguments in pieces of `size` characters.

        `index`: own, zero (all calls say 0) or none; `repeat`: id and name in each piece; `counted`: last, each or no.
        """
        found = [delta({"role": "assistant", "content": "" if self.content is not None else None})]
        for name, text in {**self.more, "content": self.content}.items():
            found += [delta({name: piece}) for piece in pieces(text, size)] if isinstance(text, str) else []
        for number, (ident, name, arguments) in enumerate(self.calls):
            place = {"own": {"index": number}, "zero": {"index": 0}, "none": {}}[index]
            given = arguments if isinstance(arguments, str) else None
            head = {} if ident is None else {"id": ident}
            first = given if index != "own" and not repeat else "" if given is not None else arguments
            start = {**place, **head, "type": "function", "function": {"name": name, "arguments": first}}
            found.append(delta({"tool_calls": [start]}))
            again = {**place, **head} if repeat else place
            for piece in pieces(given, size) if given and first != given else []:
                function = {"name": name, "arguments": piece} if repeat else {"arguments": piece}
                found.append(delta({"tool_calls": [{**again, "function": function}]}))
        found.append(delta({}, self.finish))
        if counted == "each":
            found = [chunk | {"usage": {**USAGE, "completion_tokens": n}} for n, chunk in enumerate(found)]
        last = [_envelope("chat.completion.chunk") | {"choices": [], "usage": self.usage}]
        return found + (last if counted != "no" else [])


def pieces(text: str, size: int) -> list[str]:
    """Text cut into pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def delta(said: Json, finish: str | None = None) -> Json:
    """A chunk."""
    choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": finish}
    return _envelope("chat.completion.chunk") | {"choices": [choice]}


def _envelope(kind: str) -> Json:
    return {"id": "chatcmpl-1", "object": kind, "created": 1796083200, "model": "fake-1", "system_fingerprint": "fp_1"}


def _call(ident: Any, name: str, arguments: Any) -> Json:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if ident is None else {"id": ident} | call


DONE = Said(content="Done.")
ONE = Said(calls=(("call_a", "write", PATH),), finish="tool_calls")
TWO = Said(
    content="Let me see.", calls=(("call_a", "write", PATH), ("call_b", "look", '{"q": "x"}')), finish="tool_calls"
)


def says(
    said: Said, *, done: bool = True, ending: str = "done", chunk: int = 0, pause: float = 0.0, **style: Any
) -> Play:
    """Play a completion, streamed or not, as the request asks."""

    def play(seen: Seen, hit: int) -> Reply:
        if not seen.body.get("stream"):
            return as_json(said.whole())
        return as_events(said.chunks(**style), done, ending=ending, chunk=chunk, pause=pause)

    return play


def streams(*chunks: Any, **how: Any) -> Play:
    """Play these chunks and raw frames, whether or not a stream was asked for."""
    return lambda seen, hit: as_events(chunks, **how)


def replies(*given: Reply) -> Play:
    """Play these responses one after another, the last one for ever."""
    return lambda seen, hit: replace(given[min(hit, len(given)) - 1])


def error(status: int, message: str, type: str = "invalid_request_error", code: Any = None, **headers: str) -> Reply:
    """An error in OpenAI's form."""
    body = {"error": {"message": message, "type": type, "param": None, "code": code}}
    return as_json(body, status, **headers)


def called(arguments: Any, finish: str = "tool_calls", ident: Any = "call_a", **more: Any) -> Said:
    """A completion with one call."""
    return Said(calls=((ident, "write", arguments),), finish=finish, **more)


def _interleaved(seen: Seen, hit: int) -> Reply:
    """Calls 0 and 1 in turns (vector 36)."""
    if not seen.body.get("stream"):
        return as_json(TWO.whole())
    found = TWO.chunks(size=4)
    head = [c for c in found if not _fragments(c) and c["choices"] and not c["choices"][0]["finish_reason"]]
    parts = [[c for c in found if _fragments(c) and _fragments(c)[0]["index"] == n] for n in (0, 1)]
    mixed = [c for pair in itertools.zip_longest(*parts) for c in pair if c]
    return as_events([*head, *mixed, *found[-2:]])


def _fragments(chunk: Json) -> list[Any]:
    return chunk["choices"][0]["delta"].get("tool_calls", []) if chunk["choices"] else []


def _forever(seen: Seen, hit: int) -> Reply:
    """Text that never ends, a word each 20 ms."""
    endless: Iterator[bytes] = (frame(delta({"content": f"word {n} "})) for n in itertools.count())
    return Reply(frames=endless, type="text/event-stream", pause=0.02)


def _pings(seen: Seen, hit: int) -> Reply:
    """A call that seems complete, then nothing but comments."""
    begun = [frame(chunk) for chunk in ONE.chunks()[:-2]]
    return Reply(frames=itertools.chain(begun, itertools.repeat(b": ping\n\n")), type="text/event-stream", pause=0.02)


BEGUN = [delta({"role": "assistant", "content": "Part"}), *ONE.chunks()[:-2]]
CONTEXT = "This model's maximum context length is 4096 tokens. However, your messages resulted in 7900 tokens."
LLAMA = {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error",
         "n_prompt_tokens": 7900, "n_ctx": 4096}  # fmt: skip
VLLM = {"object": "error", "message": CONTEXT, "type": "BadRequestError", "param": None, "code": 400}
RENAMED = {"index": 0, "id": "call_a", "function": {"name": "look", "arguments": "{}"}}
LIMITED = "Rate limit reached for requests"

# name -> what is played; the dialect whose strictness holds is in DIALECT, OpenAI's where it is not named
SCENARIOS: dict[str, Play] = {
    "text": says(Said(content="Hello, world.")),
    "odd_text": says(Said(content=ODD), chunk=1),
    "split_pair": streams(
        b'data: {"choices": [{"delta": {"content": "a \\ud83e"}}]}\r\n\r\n',
        b'data: {"choices": [{"delta": {"content": "\\udd8a b"}}]}\r\n\r\n',
        delta({}, "stop"),
    ),
    "empty": says(Said(content="")),
    "call": says(ONE),
    "bytes": says(TWO, chunk=1),
    "two_calls": says(TWO),
    "interleaved": _interleaved,
    "no_arguments": says(Said(calls=(("call_a", "list_all", ""),), finish="tool_calls")),
    "empty_arguments": says(called("")),
    "null_arguments": says(Said(calls=(("call_a", "list_all", None),), finish="tool_calls")),
    "object_arguments": says(called({"path": "a.txt", "n": 1})),
    "repeated_head": says(ONE, repeat=True),
    "zero_index": says(TWO, index="zero"),
    "no_index": says(TWO, index="none"),
    "no_ids": says(replace(TWO, calls=tuple(("", n, a) for _, n, a in TWO.calls)), index="zero"),
    "missing_ids": says(replace(TWO, calls=tuple((None, n, a) for _, n, a in TWO.calls)), index="none"),
    "same_ids": says(replace(TWO, calls=tuple(("call_a", n, a) for _, n, a in TWO.calls))),
    "loose": lambda seen, hit: as_json(
        Said(calls=(("", "write", {"path": "a.txt", "n": 1}), (None, "look", '{"q": "x"}')), usage=None).whole()
    ),
    "stop_with_calls": says(replace(TWO, finish="stop")),
    "calls_without_calls": says(Said(content="I shall call", finish="tool_calls")),
    "bad_json": says(replace(TWO, calls=(("call_a", "write", '{"a": oops}'), TWO.calls[1]))),
    "trailing": says(replace(TWO, calls=(("call_a", "write", '{"a":1}{"b":2}'), TWO.calls[1]))),
    "twice": says(replace(TWO, calls=(("call_a", "write", '{"a":1,"a":2}'), TWO.calls[1]))),
    "nan": says(replace(TWO, calls=(("call_a", "write", '{"a": NaN}'), TWO.calls[1]))),
    "list_arguments": says(replace(TWO, calls=(("call_a", "write", "[1,2]"), TWO.calls[1]))),
    "cut_says_calls": says(called('{"a": 12')),
    "cut_says_length": says(called('{"a": 12', "length")),
    "whole_says_length": says(replace(TWO, finish="length")),
    "nothing_says_length": says(Said(calls=(("call_a", "list_all", ""),), finish="length")),
    "filtered": says(Said(content="Part", finish="content_filter")),
    "refused": says(Said(more={"refusal": "I can't help with that."})),
    "future_end": says(replace(ONE, finish="eos_token")),
    "no_end": says(replace(ONE, finish=None)),
    "reasoning": says(replace(TWO, more={"reasoning": "The user wants a file."})),
    "reasoning_content": says(replace(TWO, more={"reasoning_content": "The user wants a file."})),
    "function_call": says(Said(more={"function_call": {"name": "write", "arguments": PATH}}, finish="function_call")),
    "tags_as_text": says(Said(content='<tool_call>{"name": "write", "arguments": {}}</tool_call>')),
    "no_usage": says(replace(TWO, usage=None), counted="no"),
    "null_usage": says(replace(TWO, usage=None)),
    "usage_on_each": says(TWO, counted="each"),
    "no_done": says(TWO, done=False),
    "no_done_closed": says(TWO, done=False, ending="close"),
    "cut": streams(*BEGUN, done=False, ending="cut"),
    "closed": streams(*BEGUN, done=False, ending="close"),
    "reset": streams(*BEGUN, done=False, ending="reset"),
    "done_without_end": streams(*BEGUN),
    "pings": _pings,
    "silence": lambda seen, hit: replace(as_json({}), wait=30.0),
    "forever": _forever,
    "error_frame": streams(*BEGUN, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
    "error_event": streams(*BEGUN, b'event: error\ndata: {"detail": "out of memory"}\n\n'),
    "bad_chunk": streams(*BEGUN, b'data: {"choices": [{\n\n'),
    "chunk_of_text": streams(b'data: "hello"\n\n'),
    "two_choices": streams(delta({"content": "a"}) | {"choices": [{"index": 1, "delta": {"content": "b"}}]}),
    "after_the_end": streams(*TWO.chunks()[:-1], *ONE.chunks()[1:2]),
    "another_name": streams(*ONE.chunks()[:2], delta({"tool_calls": [RENAMED]})),
    "html": replies(Reply(body=b"<html><!-- proxy --></html>", type="text/html")),
    "nothing": replies(as_json({})),
    "no_choices": replies(as_json({"choices": [], "usage": USAGE})),
    "cut_json": replies(Reply(body=b'{"choices": [{"mess', type="application/json")),
    "error_200": replies(error(200, "something broke", "")),
    "overloaded_200": replies(error(200, "busy", "server_error", 503)),
    "limited": lambda seen, hit: error(429, LIMITED, "requests", "rate_limit_exceeded", retry_after="0.2")
    if hit < 3 else says(DONE)(seen, hit),
    "limited_long": replies(error(429, LIMITED, "requests", "rate_limit_exceeded", retry_after="86400")),
    "limited_ms": replies(error(429, LIMITED, "requests", "rate_limit_exceeded", retry_after_ms="1500")),
    "limited_oddly": replies(error(429, LIMITED, "requests", "rate_limit_exceeded", retry_after="soon")),
    "no_quota": replies(error(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
    "forbidden": replies(error(403, "Country, region, or territory not supported", "request_forbidden")),
    "unpaid": replies(error(402, "Payment required", "billing_error")),
    "loading": replies(error(503, "Loading model", "unavailable_error", 503)),
    "broken": replies(Reply(status=500, body=b"<h1>Internal Server Error</h1>", type="text/html")),
    "bad_gateway": replies(Reply(status=502, body=b"", type="text/plain")),
    "not_found": replies(error(404, "The model `x` does not exist", "invalid_request_error", "model_not_found")),
    "no_jinja": replies(error(500, "tools param requires --jinja flag", "server_error", 500)),
    "moved": replies(Reply(status=307, headers={"location": "http://127.0.0.1:9/v1/chat/completions"})),
    "too_long": replies(error(400, CONTEXT, "invalid_request_error", "context_length_exceeded")),
    "too_long_vllm": replies(as_json(VLLM, 400)),
    "too_long_llama": replies(as_json({"error": LLAMA}, 400)),
    "too_large": replies(Reply(status=413, body=b"too large", type="text/plain")),
    "error_in_words": replies(as_json({"error": "model requires more system memory"}, 500)),
    "echo_key": lambda seen, hit: error(401, f"Incorrect API key provided: {seen.headers['authorization']}"),
}  # fmt: skip
# As each server sends a turn with two calls and its results are answered.
SCENARIOS |= {
    "openai": SCENARIOS["two_calls"],
    "vllm": says(replace(TWO, more={"reasoning": "Two files."}, usage={"prompt_tokens": 120, "completion_tokens": 30})),
    "ollama": says(
        replace(TWO, calls=tuple((f"call_{n}", name, a) for n, (_, name, a) in enumerate(TWO.calls)), finish="stop"),
        index="zero",
    ),
    "llama.cpp": says(replace(TWO, calls=tuple(("", name, a) for _, name, a in TWO.calls), content=None), size=3),
    "short_window": says(replace(DONE, usage={"prompt_tokens": 2050, "completion_tokens": 5})),
}
LOCAL = ("vllm", "ollama", "llama.cpp")
DIALECT = {name: name for name in LOCAL} | {"short_window": "ollama", "reasoning": "vllm", "no_jinja": "llama.cpp"}


def answer(seen: Seen, hit: int) -> Reply:
    """What the server says: a refusal of what is wrong, a text after results, the scenario else."""
    name = seen.scenario
    if name not in SCENARIOS or not seen.path.endswith("/v1/chat/completions"):
        return error(404, f"unknown scenario or path: {name} {seen.path}")
    if name != "echo_key" and (refused := refusal(seen, DIALECT.get(name, "openai"))):
        return refused
    if seen.body["messages"][-1]["role"] == "tool":
        return says(DONE)(seen, hit)
    return SCENARIOS[name](seen, hit)


def main() -> None:
    """Listen until somebody ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="two_calls", choices=sorted(SCENARIOS))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    given = parser.parse_args()
    if given.list:
        sys.stdout.write("\n".join(sorted(SCENARIOS)) + "\n")
        return
    with Fake(answer, given.port, given.scenario) as fake:
        address = f"http://127.0.0.1:{fake.server_address[1]}"
        sys.stdout.write(f"{given.scenario} at {address}/v1, others at {address}/NAME/v1; key {KEY}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
