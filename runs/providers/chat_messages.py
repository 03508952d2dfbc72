"""Between our messages and those of chat completions: what is sent again is what was received.

An answer is recorded as a block `chat_message`, then its text and its calls as blocks of their own, each with what the
server sent. `holds` names the blocks that follow and `turn` counts the answers, so that a history in which something
is missing, moved or doubled is refused before it is sent.
"""

from collections.abc import Mapping
from typing import Any

from runs.engine.canonical import BadJson, strict_loads, to_json
from runs.engine.messages import LABEL, Block, Message, Proposal, labels_of
from runs.providers.history import InvalidHistory, check_history

HEAD = "chat_message"
Json = dict[str, Any]


class Unusable(ValueError):
    """The server sent what chat completions cannot be; the message says what."""


def is_object(text: str) -> bool:
    """Whether the text is one JSON object that all parsers read alike."""
    try:
        return isinstance(strict_loads(text), dict)
    except BadJson:
        return False


def received(message: Json, messages: list[Message], tools: list[dict[str, Any]]) -> tuple[list[Block], list[Proposal]]:
    """Blocks and calls of a whole assistant message that answers `messages`. Raises `Unusable`.

    Ids that are missing, odd or were there before are replaced by ours: `call_<turn>_<number>`.
    """
    content, calls = _checked(message)
    turn = 1 + sum(said["role"] == "assistant" for said in messages)
    seen = {label for said in messages if said["role"] == "assistant" for label in labels_of(said)}
    blocks: list[Block] = [{"type": "text", "text": content}] if content else []
    found: list[Proposal] = []
    without_need = {tool["name"] for tool in tools if not tool["input_schema"].get("required")}
    for number, call in enumerate(calls, 1):
        label, function = _label(call.get("id"), seen, turn, number), call["function"]
        seen.add(label)
        arguments = as_text(function.get("arguments"), function["name"] in without_need)
        shown = strict_loads(arguments) if is_object(arguments) else {}
        blocks.append({"type": "tool_use", "id": label, "name": function["name"], "input": shown, "call": call})
        found.append(Proposal(label, function["name"], arguments))
    if not blocks and not message.get("refusal"):
        return [], []
    rest = {name: value for name, value in message.items() if name not in _held(content, calls)}
    return [{"type": HEAD, "turn": turn, "holds": _names(blocks), "message": rest}, *blocks], found


def as_text(arguments: Any, may_be_empty: bool) -> str:
    """The raw text of arguments, also where a server sends an object or nothing.

    Nothing means no arguments only where none are needed; else it stays empty, which no call may be.
    """
    if isinstance(arguments, dict):
        return to_json(arguments)
    return arguments or ("{}" if may_be_empty else "")


def sent(system: str, messages: list[Message], system_role: str, dropped: tuple[str, ...]) -> list[Json]:
    """The messages of a request, without the fields `dropped` of earlier answers. Raises `InvalidHistory`."""
    check_history(messages)
    chat: list[Json] = [{"role": system_role, "content": system}] if system else []
    turn = 0
    for message in messages:
        if message["role"] == "user":
            chat += _from_user(message["content"])
        else:
            turn += 1
            chat.append(_again(message["content"], turn, dropped))
    return chat


def _checked(message: Json) -> tuple[str, list[Json]]:
    """Text and calls of a message, once all that we rely on has the type that it must have."""
    content, calls = message.get("content"), message.get("tool_calls") or []
    wrong = {
        "the role of an answer": message.get("role") not in (None, "assistant"),
        "content that is no text": not isinstance(content, str | None),
        "a refusal that is no text": not isinstance(message.get("refusal"), str | None),
        "calls that are no list": not isinstance(calls, list),
        "a function call, which was not offered": bool(message.get("function_call")),
    }
    if reasons := [reason for reason, holds in wrong.items() if holds]:
        raise Unusable(reasons[0])
    if not all(map(_is_call, calls)):
        raise Unusable("a call without a function, or with odd arguments")
    return content or "", calls


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type") not in (None, "", "function"):
        return False
    name = function.get("name")
    return isinstance(name, str) and bool(name) and isinstance(function.get("arguments"), str | dict | None)


def _label(given: Any, seen: set[str], turn: int, number: int) -> str:
    if isinstance(given, str) and LABEL.match(given) and given not in seen:
        return given
    label = f"call_{turn}_{number}"
    while label in seen:  # a server may count as we do
        label += "_"
    return label


def _held(content: str, calls: list[Json]) -> set[str]:
    return ({"content"} if content else set()) | ({"tool_calls"} if calls else set())


def _names(blocks: list[Block]) -> list[str]:
    return [block["id"] if block["type"] == "tool_use" else str(block["type"]) for block in blocks]


def _from_user(content: list[Block]) -> list[Json]:
    """One tool message for each result; what people and the host say stands behind them, in one message."""
    chat: list[Json] = []
    texts: list[str] = []
    for block in content:
        if block["type"] == "tool_result":
            told = block["content"] if isinstance(block["content"], str) else to_json(block["content"])
            told = told or "(no output)"
            # There is no field that says so.
            told = f"Failed: {told}" if block.get("is_error") else told
            chat.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": told})
        elif block["type"] == "text":
            texts.append(block["text"])
        else:
            raise InvalidHistory(f"a block {str(block['type'])[:40]!r} cannot be sent to this API")
    return [*chat, {"role": "user", "content": "\n\n".join(texts)}] if texts else chat


def _again(content: list[Block], turn: int, dropped: tuple[str, ...]) -> Json:
    """An answer as it was received."""
    head, *held = content
    if head["type"] != HEAD:
        raise InvalidHistory(f"answer {turn} is of another API")
    if head["turn"] != turn or head["holds"] != _names(held):
        raise InvalidHistory(f"answer {turn} of the history is not what was received: {head['turn']} {head['holds']}")
    message = {name: value for name, value in head["message"].items() if name not in dropped}
    for block in held:
        if block["type"] == "text":
            message["content"] = block["text"]
    if calls := [_call_again(block) for block in held if block["type"] == "tool_use"]:
        message["tool_calls"] = calls
    return {"role": "assistant", **message}


def _call_again(block: Block) -> Json:
    """A call as received, but for what servers send and do not take: ids that are not unique, arguments not as text."""
    call: Mapping[str, Any] = block["call"]
    arguments = as_text(call["function"].get("arguments"), True)
    return {**call, "id": block["id"], "type": "function", "function": {**call["function"], "arguments": arguments}}
