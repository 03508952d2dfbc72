"""Replies of the fake Messages API: messages rendered as events or whole, and the wire vectors by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]
USAGE = {"input_tokens": 25, "output_tokens": 77}


@dataclass(frozen=True)
class Reply:
    """One answer: blocks and a stop, or a status with a body; `ending` says how a stream breaks off.

    `extra` are events put in after the event of that number; `cut` leaves out all events from that number on, and
    `bytes` all bytes from that one on.
    """

    blocks: tuple[Json, ...] = ()
    stop: str | None = "end_turn"
    delta: Json = field(default_factory=dict)
    usage: Json = field(default_factory=lambda: dict(USAGE))
    status: int = 200
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ending: str = "whole"
    cut: int | None = None
    extra: dict[int, list[Json]] = field(default_factory=dict)
    chunk: int = 0
    crlf: bool = False
    ascii: bool = True
    named: bool = True
    wait: float = 0.0
    bytes: int | None = None

    @property
    def paused(self) -> bool:
        """True where the API waits for the same content to come back."""
        return self.stop == "pause_turn"

    def bound(self, sign: Callable[[str], str]) -> Reply:
        """The reply with its thinking signed for the conversation in which it is given."""
        signed = [{**b, "signature": sign(b["thinking"])} if b["type"] == "thinking" else b for b in self.blocks]
        return replace(self, blocks=tuple(signed))


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def using(*blocks: Json) -> Reply:
    """Blocks that end in a wish to use tools."""
    return Reply(blocks=blocks, stop="tool_use")


def thinking(words: str) -> Json:
    return {"type": "thinking", "thinking": words, "signature": ""}


def call(ident: str, name: str, *fragments: str, **more: Any) -> Json:
    """A call whose arguments come in these pieces of text, which need not be JSON."""
    return {"type": "tool_use", "id": ident, "name": name, "fragments": fragments, **more}


def server_call(ident: str, name: str, *fragments: str) -> Json:
    return {"type": "server_tool_use", "id": ident, "name": name, "fragments": fragments}


def message_of(reply: Reply) -> Json:
    """The message in one piece. Arguments that are no JSON have no such form: their text stands in."""
    blocks = []
    for block in reply.blocks:
        plain = {key: value for key, value in block.items() if key != "fragments"}
        if "fragments" in block:
            try:
                plain["input"] = json.loads("".join(block["fragments"]) or "{}")
            except ValueError:
                plain["input"] = "".join(block["fragments"])
        blocks.append(plain)
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "fake-1", "content": blocks,
        "stop_reason": reply.stop, "stop_sequence": None, "usage": reply.usage, **reply.delta,
    }  # fmt: skip


def body_of(reply: Reply) -> str:
    """The message in one piece as text; arguments that are JSON stand in it letter by letter, repeated keys and all."""
    message = message_of(reply)
    raw = {}
    for index, block in enumerate(reply.blocks):
        if block.get("fragments") and not isinstance(message["content"][index]["input"], str):
            message["content"][index]["input"] = f"raw-{index}"
            raw[f'"raw-{index}"'] = "".join(block["fragments"]).encode("ascii", "backslashreplace").decode()
    body = json.dumps(message)
    for place, given in raw.items():
        body = body.replace(place, given)
    return body


def events_of(reply: Reply) -> list[Json]:
    """The events of the same message."""
    first = {key: value for key, value in reply.usage.items() if key != "output_tokens"} | {"output_tokens": 1}
    start = {**message_of(reply), "content": [], "stop_reason": None, "usage": first}
    for name in reply.delta:
        start.pop(name, None)
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(reply.blocks):
        opened, deltas = _pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": reply.stop, "stop_sequence": None, **reply.delta}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.usage["output_tokens"]}})
    events.append({"type": "message_stop"})
    found = []
    for number, event in enumerate(events):
        found += [event, *reply.extra.get(number, [])]
    return found[: reply.cut]


def _pieces(block: Json) -> tuple[Json, list[Json]]:
    if "fragments" in block:
        opened = {key: value for key, value in block.items() if key != "fragments"} | {"input": {}}
        return opened, [{"type": "input_json_delta", "partial_json": piece} for piece in block["fragments"]]
    if block["type"] == "text":
        words = block["text"]
        cited = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or []]
        halves = [words[: len(words) // 2], words[len(words) // 2 :]]
        return {**block, "text": "", **({"citations": []} if cited else {})}, [
            *({"type": "text_delta", "text": half} for half in halves), *cited,
        ]  # fmt: skip
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    return block, []


def frames_of(reply: Reply, events: list[Json]) -> list[bytes]:
    """The events as they go over the wire."""
    end = "\r\n" if reply.crlf else "\n"
    frames = []
    for event in events:
        name = f"event: {event['type']}{end}" if reply.named else ""
        data = event["raw"] if "raw" in event else json.dumps(event, ensure_ascii=reply.ascii)
        frames.append(f"{name}data: {data}{end}{end}".encode())
    return frames if reply.bytes is None else [b"".join(frames)[: reply.bytes]]


def error_body(kind: str, message: str, code: str | None = None) -> str:
    details = {"error_code": code} if code else None
    return json.dumps(
        {"type": "error", "error": {"type": kind, "message": message, "details": details}, "request_id": "req_fake_1"}
    )


def failing(status: int, kind: str, message: str, code: str | None = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=error_body(kind, message, code), headers=named)


def error_event(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


WRITE = call("toolu_w", "write", '{"path": "a.txt"}')
TWO = (call("toolu_1", "get_order", '{"order_id": "O-1"}'), call("toolu_2", "get_order", '{"order_id": "O-', '2"}'))
DONE = Reply(blocks=(text("Done."),))
PAUSE = Reply(
    blocks=(text("Searching. "), server_call("srvtoolu_1", "web_search", '{"query": "x"}')), stop="pause_turn"
)
ODD = 'Grüße 🙂\u2028line\u2029 \u00a0\t"quoted" \\ 漢字 \r\n end'
LATER = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "Eo8="}]}
CACHED = {
    "input_tokens": 25, "output_tokens": 77, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
    "output_tokens_details": {"thinking_tokens": 40}, "server_tool_use": {"web_search_requests": 2},
}  # fmt: skip
REFUSAL = {"stop_details": {"type": "refusal", "category": "cyber", "explanation": "not that"}}
BROKEN_TEXT = using(text("Partial answer"), WRITE)

SCENARIOS: dict[str, list[Reply]] = {
    "v01_text": [Reply(blocks=(text("Hello there."),))],
    "v02_call": [using(call("toolu_1", "get_order", "", '{"or', 'der_id"', ': "O-1', '042"}'))],
    "v03_no_deltas": [using(TWO[0], call("toolu_2", "list_orders")), DONE],
    "v04_text_between": [using(text("One."), TWO[0], text("Two."), TWO[1]), DONE],
    "v05_thinking": [
        using(thinking("Let me see."), {"type": "redacted_thinking", "data": "Eo0B=="}, TWO[0]),
        DONE,
    ],
    "v06_cut_call": [Reply(blocks=(call("toolu_1", "write", '{"path":"a.txt","content":"li'),), stop="max_tokens")],
    "v07_cut_number": [Reply(blocks=(call("toolu_1", "pay", '{"amount": 1'),), stop="max_tokens")],
    "v08_cut_before_deltas": [Reply(blocks=(call("toolu_1", "list_orders"),), stop="max_tokens")],
    "v09_second_cut": [Reply(blocks=(TWO[0], call("toolu_2", "get_order", '{"order')), stop="max_tokens")],
    "v10_not_json": [using(call("toolu_1", "pay", '{"a": oops}'))],
    "v11_trailing": [using(call("toolu_1", "pay", '{"a":1}', '{"b":2}'))],
    "v12_twice": [using(call("toolu_1", "pay", '{"a":1,', '"a":2}'))],
    "v12_nan": [using(call("toolu_1", "pay", '{"a": NaN}'))],
    "v13_list": [using(call("toolu_1", "pay", "[1,2]"))],
    "v13_string": [using(call("toolu_1", "pay", '"str"'))],
    "v13_null": [using(call("toolu_1", "pay", "null"))],
    "v14_same_id": [using(TWO[0], {**TWO[1], "id": "toolu_1"})],
    "v15_unknown_tool": [using(call("toolu_1", "launch_rocket", "{}"))],
    "v16_schema": [using(call("toolu_1", "get_order", '{"order_id": 7, "extra": true}'))],
    "v17_empty": [Reply()],
    "v18_pauses": [PAUSE, Reply(blocks=(LATER, text("More. ")), stop="pause_turn"), DONE],
    "v18_pause_refused": [PAUSE, Reply(blocks=(text("no"),), stop="refusal", delta=REFUSAL)],
    "v18_pause_broken": [PAUSE, replace(BROKEN_TEXT, cut=3, ending="eof")],
    "v18_pause_with_call": [Reply(blocks=(WRITE,), stop="pause_turn")],
    "v19_endless_pause": [PAUSE],
    "v20_server_call": [using(server_call("srvtoolu_1", "web_search", '{"query": "x"}'), WRITE)],
    "v20_mcp_call": [Reply(blocks=({**server_call("mcptoolu_1", "pay", "{}"), "type": "mcp_tool_use"}, text("x")))],
    "v20_caller": [
        using({**WRITE, "caller": {"type": "code_execution_20260521", "tool_id": "s"}})
    ],
    "v20_direct": [using({**WRITE, "caller": {"type": "direct"}}), DONE],
    "v21_refusal": [Reply(blocks=(text("Part"),), stop="refusal", delta=REFUSAL)],
    "v21_refusal_with_call": [Reply(blocks=(WRITE,), stop="refusal", delta=REFUSAL)],
    "v22_future": [Reply(blocks=({"type": "future_block", "x": {"y": [1]}}, WRITE), stop="future_stop")],
    "v22_null": [Reply(blocks=(WRITE,), stop=None)],
    "v22_no_calls": [using(text("x"))],
    "v22_calls_and_end": [Reply(blocks=(WRITE,), stop="end_turn")],
    "v23_unknown_event": [Reply(blocks=(text("Hi"),), extra={1: [{"type": "future_event", "index": 9}]})],
    "v23_unknown_delta": [
        Reply(
            blocks=(WRITE,), stop="tool_use",
            extra={2: [{"type": "content_block_delta", "index": 0, "delta": {"type": "future_delta", "x": "y"}}]},
        )
    ],
    "v24_rate_limited": [failing(429, "rate_limit_error", "Slow down", retry_after="0.2")] * 2 + [DONE],
    "v25_long_wait": [failing(429, "rate_limit_error", "Slow down", retry_after="360000")],
    "v25_wait_ms": [failing(429, "rate_limit_error", "Slow down", retry_after_ms="1500", retry_after="9")],
    "v25_wait_date": [failing(503, "api_error", "Later", retry_after="Wed, 21 Oct 2015 07:28:00 GMT")],
    "v25_wait_nonsense": [failing(429, "rate_limit_error", "Slow down", retry_after="nan")],
    "v26_spent": [failing(429, "rate_limit_error", "Limit", "enforced_spend_limit_reached", retry_after="5")],
    "v26_limits": [failing(400, "invalid_request_error", "You have reached your specified API usage limits.")],
    "v26_billing": [failing(402, "billing_error", "No funds")],
    "v27_overloaded": [failing(529, "overloaded_error", "Overloaded", x_should_retry="false", retry_after="3")],
    "v28_error_event": [replace(BROKEN_TEXT, cut=5, extra={3: [error_event("overloaded_error", "Overloaded")]})],
    "v28_rate_event": [replace(BROKEN_TEXT, cut=2, extra={0: [error_event("rate_limit_error", "Slow")]})],
    "v28_odd_event": [replace(BROKEN_TEXT, cut=2, extra={0: [{"type": "error"}]})],
    "v29_reset": [replace(BROKEN_TEXT, cut=-2, ending="reset")],
    "v30_cut_chunked": [replace(BROKEN_TEXT, cut=-1, ending="cut")],
    "v30_eof": [replace(BROKEN_TEXT, cut=-1, ending="eof")],
    "v30_eof_at_once": [replace(BROKEN_TEXT, cut=0, ending="eof")],
    "v31_pings": [replace(BROKEN_TEXT, cut=4, ending="pings")],
    "v31_stall": [replace(BROKEN_TEXT, cut=4, ending="stall")],
    "v31_silence": [replace(DONE, wait=3.0)],
    "v32_bytes": [Reply(blocks=(text(ODD),), chunk=1, crlf=True, ascii=False)],
    "v32_escapes": [Reply(blocks=(text(ODD),), chunk=3)],
    "v32_split_pair": [using(text("\ud83d\ude42"), call("toolu_1", "say", '{"a": "\ud83d', '\ude42"}'))],
    "v32_half_character": [Reply(blocks=(text("\ud83d"),))],
    "v32_unnamed": [Reply(blocks=(text("Hi"),), named=False)],
    "v33_too_long": [failing(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")],
    "v33_413": [failing(413, "request_too_large", "Request exceeds the maximum size")],
    "v33_window": [Reply(blocks=(text("Half"), WRITE), stop="model_context_window_exceeded")],
    "v34_html": [Reply(body="<html>Sign in</html>", headers={"content-type": "text/html"})],
    "v34_object": [Reply(body="{}")],
    "v34_cut_json": [Reply(body='{"type": "message", "content": [')],
    "v34_gateway": [Reply(status=502, body="<html>" + "bad gateway " * 400, headers={"content-type": "text/html"})],
    "v34_bad_frame": [replace(DONE, extra={1: [{"type": "ping", "raw": "{oops"}]})],
    "v30_nothing": [replace(DONE, cut=0)],
    "v35_large": [DONE],
    "stop_sequence": [Reply(blocks=(text("Up to here"),), stop="stop_sequence", delta={"stop_sequence": "END"})],
    "cached": [Reply(blocks=(text("Hi"),), usage=CACHED)],
    "cited": [Reply(blocks=(text("As said.", citations=[{"type": "char_location", "cited_text": "c"}]),))],
    "late_counts": [
        Reply(
            blocks=(text("Hi"),), extra={5: [{"type": "message_delta", "delta": {}, "usage": {"output_tokens": None}}]}
        )
    ],
    "bad_key": [failing(401, "authentication_error", "invalid x-api-key")],
    "forbidden": [failing(403, "permission_error", "not allowed")],
    "no_such_model": [failing(404, "not_found_error", "model: fake-9")],
    "server_error": [failing(500, "api_error", "Internal server error")],
    "moved": [Reply(status=307, body="{}", headers={"location": "http://127.0.0.1:1/v1/messages"})],
}  # fmt: skip
