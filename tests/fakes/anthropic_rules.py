"""What the Messages API refuses with a 400, in its own words: fields, order of roles, ids, empty texts, thinking."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

Json = dict[str, Any]
FIELDS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "metadata",
    "service_tier", "stop_sequences", "stream", "cache_control", "container", "inference_geo", "diagnostics", "speed",
}  # fmt: skip
USER = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
STRICT = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "default", "pattern", "format", "$ref", "$defs",
}  # fmt: skip


class Refused(Exception):
    """The request breaks a rule; the message is the API's."""


def check(body: Any) -> None:
    """Raise `Refused` for a request that the API would not take."""
    if not isinstance(body, dict):
        raise Refused("The request body is not valid JSON")
    for name in body.keys() - FIELDS:
        gone = name in ("temperature", "top_p", "top_k")
        raise Refused(f"`{name}` is no longer supported." if gone else f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Refused(f"{name}: Field required")
    if not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1:
        raise Refused("max_tokens: Input should be greater than or equal to 1")
    _tools(body.get("tools", []))
    if body.get("system") == "" or any(b.get("text") == "" for b in _blocks(body.get("system") or [])):
        raise Refused("system: text content blocks must be non-empty")
    _cache(body)
    _messages(body)


def _tools(tools: list[Json]) -> None:
    for index, tool in enumerate(tools):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.get("name", "")):
            raise Refused(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            raise Refused(f"tools.{index}.custom.input_schema.type: Field required")
        if extra := tool.keys() - {"type", "name", "description", "input_schema", "strict", "cache_control"}:
            raise Refused(f"tools.{index}.custom.{min(extra)}: Extra inputs are not permitted")
        if tool.get("strict"):
            _strict(index, tool["input_schema"])
    if len({tool["name"] for tool in tools}) < len(tools):
        raise Refused("tools: Tool names must be unique.")
    if sum(bool(tool.get("strict")) for tool in tools) > 20:
        raise Refused("Too many strict tools. The maximum number of strict tools supported is 20.")


def _strict(index: int, schema: Any) -> None:
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if extra := schema.keys() - STRICT:
        raise Refused(f"tools.{index}.custom: For '{kind}' type, property '{min(extra)}' is not supported")
    if kind == "object" and schema.get("additionalProperties") is not False:
        raise Refused(
            f"tools.{index}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )
    if re.search(r"\(\?|\\[bB1-9]", schema.get("pattern", "")):
        raise Refused(f"tools.{index}.custom: the pattern is not supported")
    for part in [*schema.get("properties", {}).values(), schema.get("items")]:
        _strict(index, part)


def _cache(body: Json) -> None:
    places = [*_blocks(body.get("system") or []), *body.get("tools", [])]
    for number, message in enumerate(body["messages"]):
        for place, block in enumerate(_blocks(message.get("content") or [])):
            if block.get("cache_control") and block.get("type") in ("thinking", "redacted_thinking"):
                raise Refused(
                    f"messages.{number}.content.{place}.thinking.cache_control: Extra inputs are not permitted"
                )
            places.append(block)
    if (found := sum("cache_control" in place for place in places)) > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {found}.")


def _messages(body: Json) -> None:
    messages = merged(body["messages"])
    if not messages or messages[0]["role"] != "user":
        raise Refused(
            'messages: first message must use the "user" role'
            if messages
            else "messages: at least one message is required"
        )
    seen: set[str] = set()
    wanted: list[str] = []
    for index, message in enumerate(messages):
        last, content = index == len(messages) - 1, message["content"]
        if not content:
            raise Refused(
                f"messages.{index}: all messages must have non-empty content except for the optional final assistant"
                " message"
            )
        if any(block.get("type") == "text" and not block.get("text") for block in content):
            raise Refused("messages: text content blocks must be non-empty")
        if message["role"] == "user":
            _results(index, content, wanted)
            wanted = []
            continue
        if last:
            raise Refused(
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
        if any(block["type"] == "tool_result" for block in content):
            raise Refused(f"messages.{index}: `tool_result` blocks can only be in `user` messages")
        wanted = [block["id"] for block in content if block["type"] == "tool_use"]
        _calls(index, content, seen)
        _thinking(body, messages[:index], index, content)


def _calls(index: int, content: list[Json], seen: set[str]) -> None:
    for place, block in enumerate(content):
        if block["type"] == "tool_use":
            if not isinstance(block.get("input"), dict):
                raise Refused(f"messages.{index}.content.{place}.tool_use.input: Input should be a valid dictionary")
            if block["id"] in seen:
                raise Refused(f"messages.{index}.content.{place}: `tool_use` ids must be unique")
            seen.add(block["id"])


def _results(index: int, content: list[Json], wanted: list[str]) -> None:
    found = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if odd := [block["type"] for block in content if block["type"] not in USER]:
        raise Refused(
            f"messages.{index}.content.0: Input tag '{odd[0]}' found using 'type' does not match any of the expected"
            " tags"
        )
    if lost := [ident for ident in wanted if ident not in found]:
        raise Refused(
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately"
            f" after: {', '.join(lost)}. Each `tool_use` block must have a corresponding `tool_result`"
            " block in the next message."
        )
    if extra := [ident for ident in found if ident not in wanted]:
        raise Refused(
            f"messages.{index}.content.{found.index(extra[0])}: unexpected `tool_use_id` found in `tool_result`"
            f" blocks: {extra[0]}. Each `tool_result` block must have a corresponding `tool_use`"
            " block in the previous message."
        )
    if len(set(found)) < len(found):
        raise Refused(
            f"messages.{index}.content: each tool_use must have a single result. Found multiple `tool_result` blocks"
        )
    texts = [place for place, block in enumerate(content) if block["type"] == "text"]
    results = [place for place, block in enumerate(content) if block["type"] == "tool_result"]
    if texts and results and texts[0] < results[-1]:
        raise Refused(f"messages.{index}: `tool_result` blocks must come first in the content of a user message")
    for block in content:
        if block["type"] == "tool_result" and any(
            part.get("type") == "text" and not part.get("text") for part in _blocks(block.get("content") or [])
        ):
            raise Refused("messages: text content blocks must be non-empty")


def _thinking(body: Json, before: list[Json], index: int, content: list[Json]) -> None:
    for place, block in enumerate(content):
        if block["type"] != "thinking":
            continue
        where = f"messages.{index}.content.{place}"
        text, _, prefix = block["signature"].partition(".")
        if text != sha(block["thinking"]):
            raise Refused(f"{where}: Invalid `signature` in `thinking` block")
        if prefix != prefix_of(body, before):
            raise Refused(f"{where}: The block is bound to a different conversation")


def signature(body: Json, thinking: str) -> str:
    """What the API would sign: the thinking, and everything before it."""
    before = merged(body["messages"])
    return f"{sha(thinking)}.{prefix_of(body, before[:-1] if before[-1]['role'] == 'assistant' else before)}"


def prefix_of(body: Json, before: list[Json]) -> str:
    return sha(_plain([_blocks(body.get("system") or []), body.get("tools", []), before]))


def merged(messages: list[Json]) -> list[Json]:
    """Messages in a row of the same role are one."""
    found: list[Json] = []
    for message in messages:
        content = _blocks(message.get("content") or [])
        if found and found[-1]["role"] == message["role"]:
            found[-1] = {**found[-1], "content": [*found[-1]["content"], *content]}
        else:
            found.append({"role": message["role"], "content": content})
    return found


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _plain(value: Any) -> Any:
    """The value without marks for the cache, which are no part of the conversation."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def sha(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]
