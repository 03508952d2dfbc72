"""Streams of chat completions, cut and split in every way."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.providers.base import Answer
from tests.fakes.openai import SCENARIOS, TWO, delta
from tests.fakes.openai_asking import Asked, ask
from tests.fakes.openai_wire import ENDINGS, Fake, Json, Reply, Seen, as_events, frame

QUICK = settings(max_examples=80, deadline=None)
RECORDED = [
    "text", "two_calls", "interleaved", "no_arguments", "object_arguments", "repeated_head", "zero_index", "no_index",
    "no_ids", "same_ids", "stop_with_calls", "reasoning", "usage_on_each", "vllm", "ollama", "llama.cpp",
]  # fmt: skip


class Played:
    """A server that says what it was handed last."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.fake = Fake(lambda seen, hit: self.reply)

    def ask(self, reply: Reply, **quirks: Any) -> Asked:
        self.reply = reply
        return ask(self.fake, "played", **quirks)


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    one = Played()
    with one.fake:
        yield one


def recorded(scenario: str) -> bytes:
    """The whole stream of a scenario."""
    reply = SCENARIOS[scenario](Seen(scenario, "", {}, {"stream": True}, b""), 1)
    return b"".join(reply.frames or [])


def cut_at(data: bytes, at: int, ending: str) -> Reply:
    return Reply(frames=[data[:at]] if at else [], type="text/event-stream", ending=ending)


@given(
    scenario=st.sampled_from(RECORDED), part=st.floats(0, 1), ending=st.sampled_from(ENDINGS), trusting=st.booleans()
)
@QUICK
def test_a_stream_that_is_cut_anywhere_runs_nothing_that_is_not_whole(
    played: Played, scenario: str, part: float, ending: str, trusting: bool
) -> None:
    data = recorded(scenario)
    at = min(int(part * len(data)), len(data) - 2)
    asked = played.ask(cut_at(data, at, ending), needs_done=not trusting)
    if isinstance(asked.result, Answer):
        # Only where this server is known to leave out the last word, and everything before it is there.
        assert trusting and b'"finish_reason": "' in data[:at]
        assert asked.executed == played.ask(cut_at(data, len(data), "done")).executed
    else:
        assert asked.error.kind in ("network", "malformed")
        assert asked.error.usage is not None


def test_a_stream_that_is_cut_after_any_frame_runs_nothing(played: Played) -> None:
    frames = [piece + b"\n\n" for piece in recorded("two_calls").split(b"\n\n") if piece]
    for number in range(len(frames)):
        for ending in ("done", "close"):
            reply = Reply(frames=frames[:number], type="text/event-stream", ending=ending)
            assert played.ask(reply).error.reason == "network", number
    assert len(played.ask(Reply(frames=frames, type="text/event-stream")).executed) == 2


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('abc{}"é🦊', max_size=4), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=3), values, max_size=3)


@st.composite
def fragmented(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[Json]]:
    """Calls, and the pieces of a stream that carries them in one of the ways that servers have."""
    found, parts = [], []
    way = draw(st.sampled_from(["own", "zero", "none"]))
    named, idents = draw(st.booleans()), draw(st.sampled_from(["first", "each", "late", "never"]))
    for number in range(draw(st.integers(1, 4))):
        text = json.dumps(draw(objects), ensure_ascii=draw(st.booleans()))
        name = draw(st.sampled_from(["write", "look", "list_all"]))
        places = sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=5)))
        pieces = [text[a:b] for a, b in itertools.pairwise([0, *places, len(text)])]
        # A late id cannot be told from that of a new call where calls share an index.
        given_id = {"first": 0, "late": len(pieces) - 1 if way == "own" else 0}.get(idents)
        mine = []
        for place, piece in enumerate(pieces):
            part: Json = {"index": {"own": number, "zero": 0}.get(way)} if way != "none" else {}
            part["function"] = {"arguments": piece} | ({"name": name} if named or not place else {})
            if idents == "each" or place == given_id:
                part |= {"id": f"call_{number}x"}
            mine.append(part)
        found.append((name, text))
        parts.append(mine)
    if way != "own":
        return found, [part for mine in parts for part in mine]
    mixed = []
    queues = [list(mine) for mine in parts]
    # The first pieces come in the order of the calls, the rest in any.
    mixed += [queue.pop(0) for queue in queues]
    while any(queues):
        mixed.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return found, mixed


@given(
    made=fragmented(),
    together=st.integers(1, 4),
    chunk=st.sampled_from([0, 0, 3, 64]),
    finish=st.sampled_from(["tool_calls", "stop"]),
)
@QUICK
def test_calls_are_the_same_however_they_are_cut_into_pieces(
    played: Played, made: tuple[list[tuple[str, str]], list[Json]], together: int, chunk: int, finish: str
) -> None:
    calls, parts = made
    chunks = [delta({"tool_calls": parts[at : at + together]}) for at in range(0, len(parts), together)]
    asked = played.ask(as_events([*chunks, delta({}, finish)], chunk=chunk))
    assert asked.executed == calls


@given(text=st.text(st.characters(codec="utf-8"), min_size=1), size=st.integers(1, 5), chunk=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_text_is_the_same_however_it_is_cut(played: Played, text: str, size: int, chunk: int) -> None:
    escaped = json.dumps(text)  # surrogate pairs as two escapes, which may end up in two chunks
    units = [f'"{piece}"' for piece in _escapes(escaped[1:-1], size)]
    frames = [b'data: {"choices": [{"delta": {"content": %s}}]}\r\n\r\n' % unit.encode() for unit in units]
    asked = played.ask(as_events([*frames, delta({}, "stop")], chunk=chunk))
    assert asked.answer.blocks[1]["text"] == text == "".join(asked.live)


def _escapes(text: str, size: int) -> list[str]:
    """JSON text in pieces that hold whole escapes."""
    units, at = [], 0
    while at < len(text):
        width = 1 if text[at] != "\\" else 6 if text[at + 1] == "u" else 2
        units.append(text[at : at + width])
        at += width
    return ["".join(units[at : at + size]) for at in range(0, len(units), size)]


def test_a_stream_without_an_end_is_ended(played: Played) -> None:
    reply = Reply(frames=itertools.repeat(frame(delta({"content": "x" * 1_000_000}))), type="text/event-stream")
    error = played.ask(reply, seconds=30).error
    assert (error.kind, "no end" in error.detail) == ("malformed", True)


def test_a_recorded_stream_is_what_its_scenario_says() -> None:
    assert recorded("two_calls").endswith(b"data: [DONE]\n\n")
    assert len(TWO.calls) == 2
