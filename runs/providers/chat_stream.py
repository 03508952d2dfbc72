"""A streamed chat completion, put together by ourselves.

The SDK's own helper joins ids that are repeated in each piece, makes one call of two that share an index, and takes a
stream that was cut for a whole one (providers.md 2.5).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runs.providers.chat_messages import Json, Unusable, is_object
from runs.providers.wire import whole

APPENDED = ("content", "refusal", "reasoning", "reasoning_content")
MOST_CALLS = 128


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines that ended, however the bytes were cut."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun).removesuffix(b"\r").decode()
            begun = [other]


def frames(pieces: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Event name and data of each frame that ended; comments are left out."""
    event = ""
    data: list[str] = []
    for line in lines(pieces):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and data:
            yield event, "\n".join(data)
        if not line:
            event, data = "", []
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)


class Live:
    """Passes text on as it comes, but never half of a surrogate pair, which no page could be sent."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self.on_delta, self.kept = on_delta, ""

    def say(self, text: str) -> None:
        """Pass on what is whole."""
        text = self.kept + text
        self.kept = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if ready := whole(text.removesuffix(self.kept)):
            self.on_delta(ready.encode("utf-8", "replace").decode())


class Collector:
    """What arrived of one completion. `finish` is None until the server said why it stopped."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self.live = Live(on_delta)
        self.fields: Json = {}
        self.texts: dict[str, list[str]] = {}
        self.calls: list[Json] = []
        self.open: dict[int | None, Json] = {}
        self.finish: str | None = None
        self.usage: Json | None = None
        self.model = ""

    def take(self, chunk: Any) -> None:
        """Add a chunk. Raises `Unusable`."""
        if not isinstance(chunk, dict):
            raise Unusable("a chunk that is no object")
        choices, usage = chunk.get("choices"), chunk.get("usage")
        self._about(chunk)
        if choices is None and isinstance(usage, dict):
            return
        if not isinstance(choices, list) or len(choices) > 1:
            raise Unusable("a chunk without choices, or with several")
        for choice in choices:
            self._choice(choice)

    def take_whole(self, message: Json, body: Json) -> None:
        """Take a message that was not streamed."""
        self._about(body)
        self.fields = message
        if message.get("content") and isinstance(message["content"], str):
            self.live.say(message["content"])

    def _about(self, body: Json) -> None:
        if isinstance(body.get("usage"), dict):
            self.usage = body["usage"]  # some servers count in every chunk: the last one holds
        if isinstance(body.get("model"), str):
            self.model = body["model"][:200]

    def message(self) -> Json:
        """The message so far."""
        joined = self.fields | {name: whole("".join(pieces)) for name, pieces in self.texts.items()}
        calls = [{**call, "function": dict(call["function"])} for call in self.calls]
        for call in calls:
            if isinstance(call["function"].get("arguments"), list):
                call["function"]["arguments"] = whole("".join(call["function"]["arguments"]))
        return joined | ({"tool_calls": calls} if calls else {})

    def _choice(self, choice: Any) -> None:
        delta = (choice.get("delta") or {}) if isinstance(choice, dict) else None
        if not isinstance(delta, dict) or choice.get("index") not in (None, 0) or choice.get("message"):
            raise Unusable("a choice that is no piece of the one answer")
        said = {name: value for name, value in delta.items() if value not in (None, "", [])} if self.finish else {}
        if said.keys() & {*APPENDED, "tool_calls"}:
            raise Unusable("more of an answer after its end")
        for name, value in delta.items():
            if name == "tool_calls":
                self._fragments(value)
            else:
                self._field(name, value)
        finish = choice.get("finish_reason")
        if not isinstance(finish, str | None) or (self.finish and finish not in (None, self.finish)):
            raise Unusable("an odd end, or two")
        self.finish = finish or self.finish

    def _field(self, name: str, value: Any) -> None:
        if name in APPENDED and isinstance(value, str):
            self.texts.setdefault(name, []).append(value)
        elif value is not None:
            self.fields[name] = value
        else:
            self.fields.setdefault(name, None)
        if name == "content" and value:
            if not isinstance(value, str):
                raise Unusable("content that is no text")
            self.live.say(value)

    def _fragments(self, fragments: Any) -> None:
        if not isinstance(fragments, list | None):
            raise Unusable("calls that are no list")
        for fragment in fragments or []:
            if not isinstance(fragment, dict) or not isinstance(fragment.get("function") or {}, dict):
                raise Unusable("a piece of a call that is no object")
            self._fragment(fragment, fragment.get("function") or {})

    def _fragment(self, fragment: Json, function: Json) -> None:
        index, ident, name = fragment.get("index"), fragment.get("id"), function.get("name")
        if (
            type(index) not in (int, type(None))
            or not isinstance(ident, str | None)
            or not isinstance(name, str | None)
        ):
            raise Unusable("a piece of a call with an odd index, id or name")
        call = self.open.get(index)
        if call is None or _is_new(call, ident, name):
            call = {"function": {}}
            self.open[index] = call
            self.calls.append(call)
            if len(self.calls) > MOST_CALLS:
                raise Unusable(f"more than {MOST_CALLS} calls")
        if ident and not call.get("id"):
            call["id"] = ident
        if name and call["function"].setdefault("name", name) != name:
            raise Unusable("a call that changes its name")
        for known, value in fragment.items():
            if known not in ("index", "id", "function") and value is not None:
                call.setdefault(known, value)
        _add_arguments(call["function"], function.get("arguments"))


def _is_new(call: Json, ident: str | None, name: str | None) -> bool:
    """Whether a piece begins another call at an index where one is open: Ollama gives all calls the index 0."""
    if ident and call.get("id"):
        return bool(ident != call["id"])
    if not name or "name" not in call["function"]:
        return False
    if name != call["function"]["name"]:
        return True
    return not call.get("id") and _is_complete(call["function"].get("arguments"))


def _is_complete(arguments: Any) -> bool:
    return isinstance(arguments, dict) or (isinstance(arguments, list) and is_object("".join(arguments)))


def _add_arguments(function: Json, arguments: Any) -> None:
    """Text is added, an object is taken whole; both in one call cannot be told apart from a cut."""
    held = function.get("arguments")
    if arguments is None:
        function.setdefault("arguments", None)
    elif isinstance(arguments, dict) and not held:
        function["arguments"] = arguments
    elif isinstance(arguments, str) and not isinstance(held, dict):
        function["arguments"] = [*(held or []), arguments]
    elif arguments != "":
        raise Unusable("arguments in a form of their own")
