"""A response of the Messages API put together from its events, block by block, as received.

Nothing is repaired: what breaks the order of the stream, or is cut, is `Broken`, and a call counts only when its block
was closed and the response reached its end.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from runs.engine.canonical import BadJson, strict_loads
from runs.engine.messages import Block
from runs.providers import wire
from runs.providers.base import Usage

INPUTS = ("tool_use", "server_tool_use", "mcp_tool_use")


class Broken(Exception):
    """The response is not one: the message says which rule of the wire it breaks."""


class Failed(Exception):
    """The server reported an error in the middle of the stream; it stands in `Response.error`."""


class Response:
    """One response under way. `stop` is None until the server gave one; `raw` holds the arguments of calls by id."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self.on_delta = on_delta
        self.blocks: list[Block] = []
        self.inputs: dict[int, list[str]] = {}
        self.raw: dict[str, str] = {}
        self.error: dict[str, Any] | None = None
        self.stop: str | None = None
        self.stop_detail = self.model = self.container = self.request_id = ""
        self.counts: dict[str, Any] = {}
        self.open = False
        self.started = self.counted = self.over = False
        self.odd = ""

    def began(self, headers: Mapping[str, str]) -> None:
        """Headers arrived."""
        self.request_id = headers.get("request-id", "")

    def take(self, data: str) -> None:
        """One event of a stream. Raises `Broken`, `Failed`, or `ValueError` for what is not JSON."""
        event = wire.parse(data)
        if not isinstance(event, dict):
            raise Broken("an event is not an object")
        handler = HANDLERS.get(str(event.get("type")))
        if handler is not None:
            if not self.started and handler not in (Response._start, Response._error):
                raise Broken("an event before message_start")
            handler(self, event)

    def whole(self, text: str) -> None:
        """A response that came in one piece."""
        message = wire.parse(text)
        if isinstance(message, dict) and message.get("type") == "error":
            self._error(message)
        if not isinstance(message, dict) or not isinstance(message.get("content"), list):
            raise Broken("no message in the response")
        self._start({"message": {**message, "content": []}})
        for index, block in enumerate(message["content"]):
            self._open({"index": index, "content_block": block})
            self._close({"index": index})
        self._end({"delta": message, "usage": message["usage"]})
        self.over = True

    def finish(self) -> list[Block]:
        """The blocks of a response that is over, with the input of each call parsed. Raises `Broken` or `EOFError`."""
        if not self.over:
            raise EOFError("the stream ended before message_stop")
        if self.odd:
            raise Broken(self.odd)
        for index, block in enumerate(self.blocks):
            if block["type"] in INPUTS:
                self._input(index, block)
        whole = self.partial()
        if not storable(whole):
            raise Broken("half of a character, which no request could carry back")
        return whole

    def partial(self) -> list[Block]:
        """What has arrived, whether whole or not."""
        return [{k: wire.whole(v) if isinstance(v, str) else v for k, v in b.items()} for b in self.blocks]

    def usage(self, cut: bool = False) -> Usage:
        """What was counted. Writes of unknown life count as short-lived, which is what is asked for."""
        written = wire.count(self.counts.get("cache_creation_input_tokens"))
        split = _part(self.counts, "cache_creation")
        hour = min(wire.count(split.get("ephemeral_1h_input_tokens")), written)
        return Usage(
            input=wire.count(self.counts.get("input_tokens")),
            output=wire.count(self.counts.get("output_tokens")),
            cache_read=wire.count(self.counts.get("cache_read_input_tokens")),
            cache_write_5m=written - hour,
            cache_write_1h=hour,
            thinking=wire.count(_part(self.counts, "output_tokens_details").get("thinking_tokens")),
            searches=wire.count(_part(self.counts, "server_tool_use").get("web_search_requests")),
            complete=self.counted and not cut,
        )

    def _start(self, event: dict[str, Any]) -> None:
        message = event.get("message")
        if self.started or not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
            raise Broken("message_start without a message, its usage, or not once")
        if message.get("content") or message.get("role", "assistant") != "assistant":
            raise Broken("message_start of somebody else, or with content")
        self.started, self.counts = True, dict(message["usage"])
        self.model = str(message.get("model", ""))[:100]

    def _open(self, event: dict[str, Any]) -> None:
        block = event.get("content_block")
        if self.open or self.counted or event.get("index") != len(self.blocks) or not isinstance(block, dict):
            raise Broken("content_block_start out of order")
        if not isinstance(block.get("type"), str):
            raise Broken("a block without a type")
        if block["type"] == "tool_use" and not all(isinstance(block.get(key), str) for key in ("id", "name")):
            raise Broken("a tool_use without id or name")
        if block["type"] == "tool_use" and not isinstance(block.get("caller"), dict | None):
            raise Broken("a tool_use whose caller is no object")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise Broken("a text block without text")
        self.blocks.append(dict(block))
        self.inputs[len(self.blocks) - 1] = []
        self.open = True

    def _delta(self, event: dict[str, Any]) -> None:
        delta = event.get("delta")
        if not self.open or event.get("index") != len(self.blocks) - 1 or not isinstance(delta, dict):
            raise Broken("content_block_delta out of order")
        block = self.blocks[-1]
        kind = delta.get("type")
        if kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif kind == "compaction_delta":
            block.update({key: value for key, value in delta.items() if key != "type"})
        elif kind not in DELTAS or not isinstance(delta.get(DELTAS[kind]), str):
            self.odd = self.odd or f"a delta of the unknown kind {str(kind)[:40]!r}"
        elif kind == "input_json_delta":
            self.inputs[len(self.blocks) - 1].append(delta["partial_json"])
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        else:
            key = DELTAS[kind]
            block[key] = (block.get(key) or "") + delta[key]
            if kind == "text_delta" and delta[key]:
                self.on_delta(delta[key])

    def _close(self, event: dict[str, Any]) -> None:
        if not self.open or event.get("index") != len(self.blocks) - 1:
            raise Broken("content_block_stop out of order")
        self.open = False

    def _end(self, event: dict[str, Any]) -> None:
        delta = event.get("delta")
        if self.open or not isinstance(delta, dict):
            raise Broken("message_delta out of order")
        if delta.get("stop_reason") is not None:
            self.stop = str(delta["stop_reason"])[:64]
        about = _part(delta, "stop_details")
        told = [str(about[key]) for key in ("category", "explanation") if about.get(key)]
        self.stop_detail = wire.said(": ".join(told), "")
        self.container = str(_part(delta, "container").get("id", ""))[:200]
        counts = event.get("usage")
        self.counts |= {k: v for k, v in counts.items() if v is not None} if isinstance(counts, dict) else {}
        self.counted = True

    def _stop(self, event: dict[str, Any]) -> None:
        if self.open or not self.counted:
            raise Broken("message_stop before message_delta")
        self.over = True

    def _error(self, event: dict[str, Any]) -> None:
        error = event.get("error")
        self.error = error if isinstance(error, dict) else {}
        raise Failed

    def _input(self, index: int, block: Block) -> None:
        """Parse the input of a call. What does not parse stays text: the host refuses it, and the record shows it."""
        given = "".join(self.inputs[index])
        text = wire.whole(given) if given else json.dumps(block.get("input"))
        if block["type"] == "tool_use":
            self.raw[block["id"]] = text
        if not given:
            return
        try:
            parsed = strict_loads(text) if block["type"] == "tool_use" else wire.parse(text)
            block["input"] = parsed if isinstance(parsed, dict) else text
        except (BadJson, ValueError):
            block["input"] = text


def storable(blocks: list[Block]) -> bool:
    """Whether the blocks can be written as UTF-8, as they must be to go back."""
    try:
        json.dumps(blocks, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _part(of: dict[str, Any], key: str) -> dict[str, Any]:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


DELTAS = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature",
    "input_json_delta": "partial_json",
}  # fmt: skip
HANDLERS: dict[str, Callable[[Response, dict[str, Any]], None]] = {
    "message_start": Response._start, "content_block_start": Response._open, "content_block_delta": Response._delta,
    "content_block_stop": Response._close, "message_delta": Response._end, "message_stop": Response._stop,
    "error": Response._error,
}  # fmt: skip
