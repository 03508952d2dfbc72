"""The rules of a conversation, checked before it is sent: a history that is broken is refused, never repaired.

The real API answers 400 to these, for ever after; and a call without its result, or a result twice, would let the
model believe what is not on record.
"""

from runs.engine.messages import Block, Message
from runs.providers.base import Kind, ProviderError

NOT_OF = {"user": ("tool_use", "server_tool_use", "thinking", "redacted_thinking"), "assistant": ("tool_result",)}


class InvalidHistory(ProviderError, ValueError):
    """The real API would answer 400; the detail says which rule of the history is broken."""

    def __init__(self, rule: str) -> None:
        super().__init__("invalid_request", kind=Kind.INVALID_REQUEST, detail=rule)


def check_history(messages: list[Message]) -> None:
    """Refuse what the real API refuses: order of roles, empty content, calls without exactly one result right after.

    Raises `InvalidHistory`.
    """
    if not messages or messages[0]["role"] != "user" or messages[-1]["role"] != "user":
        raise InvalidHistory("a conversation begins and ends with a user message")
    seen: set[str] = set()
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[index % 2]:
            raise InvalidHistory(f"messages.{index}: roles must alternate")
        if not message["content"]:
            raise InvalidHistory(f"messages.{index}: content must not be empty")
        if odd := [b["type"] for b in message["content"] if b["type"] in NOT_OF[message["role"]]]:
            raise InvalidHistory(f"messages.{index}: {odd[0]} is not of the {message['role']}")
        if any(block["type"] == "text" and not block["text"] for block in message["content"]):
            raise InvalidHistory(f"messages.{index}: text content blocks must be non-empty")
        if message["role"] == "user":
            _check_results(index, message["content"], open_ids)
            continue
        open_ids = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        if len(set(open_ids)) < len(open_ids) or not seen.isdisjoint(open_ids):
            raise InvalidHistory(f"messages.{index}: tool_use ids must be unique")
        if any(block["type"] == "tool_use" and not isinstance(block["input"], dict) for block in message["content"]):
            raise InvalidHistory(f"messages.{index}: the input of a tool_use must be an object")
        seen |= set(open_ids)


def _check_results(index: int, content: list[Block], wanted: list[str]) -> None:
    found = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if found != wanted:
        raise InvalidHistory(
            f"messages.{index}: results {found} do not answer the calls {wanted}, once each and in order"
        )
    first_text = next((i for i, block in enumerate(content) if block["type"] == "text"), len(content))
    if any(block["type"] == "tool_result" for block in content[first_text:]):
        raise InvalidHistory(f"messages.{index}: tool_result blocks stand before text")
