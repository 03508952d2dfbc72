"""Bytes that mean one thing: strict JSON in, canonical JSON out, digests over every part."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from runs.engine.canonical import (
    LARGEST,
    BadJson,
    action_digest,
    canonical,
    operation_key,
    storable,
    strict_loads,
    to_json,
)

REFUSED = {
    "a repeated key": ('{"a": 1, "a": 2}', "stands twice"),
    "a repeated key within": ('[{"b": {"a": 1, "a": 1}}]', "stands twice"),
    "a key repeated by an escape": ('{"a": 1, "\\u0061": 2}', "stands twice"),
    "NaN": ('{"a": NaN}', "NaN"),
    "Infinity": ("[Infinity]", "Infinity"),
    "minus Infinity": ("[-Infinity]", "Infinity"),
    "1e400": ("1e400", "beyond"),
    "1e20, which would come back as an integer": ("1e20", "beyond"),
    "2**53": (str(2**53), "beyond"),
    "-2**53": (str(-(2**53)), "beyond"),
    "an endless integer": ("9" * 5_000, "beyond"),
    "34 levels": ("[" * 34 + "]" * 34, "nested"),
    "100,000 levels": ("[" * 100_000, "nested"),
    "two values": ("{} {}", "not JSON"),
    "a trailing comma": ("[1,]", "not JSON"),
    "single quotes": ("{'a': 1}", "not JSON"),
    "nothing": ("", "not JSON"),
    "NUL in a string": ('"a\\u0000b"', "NUL"),
    "NUL in a key": ('{"a\\u0000": 1}', "NUL"),
}
ACCEPTED = [
    "{}",
    "[]",
    "0",
    '"x"',
    "null",
    str(2**53 - 1),
    str(-(2**53) + 1),
    "[" * 32 + "]" * 32,
    "1.5e3",
    '{"a":{"b":[1,true]}}',
]
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2.0**53) + 1, 2.0**53 - 1, allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(("text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_two_parsers_read_differently_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadJson, match=says):
        strict_loads(text)


@pytest.mark.parametrize("text", ACCEPTED)
def test_plain_json_is_read_as_everywhere(text: str) -> None:
    assert strict_loads(text) == json.loads(text)


@given(values)
def test_the_canonical_form_is_stable(value: Any) -> None:
    once = canonical(value)
    assert canonical(strict_loads(once)) == once


@given(values)
@example("".join(map(chr, range(256))))
@example({chr(n): [n, -n, True, None, ""] for n in range(128)})
@example([LARGEST, -LARGEST, 1e21, 1e-7, -0.0, 0.1, 1.0])
@example({"\U0001f600": 1, "\ufb33": 2, "e\u0301": 3})
def test_what_is_simple_is_written_as_the_library_for_rfc_8785_does(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value).decode()


@given(st.dictionaries(texts, numbers, min_size=2))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, float("nan"), float("inf"), 2**53, object(), {1: 2}])
def test_what_json_cannot_carry_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(BadJson):
        canonical(value)


@given(st.text(st.characters()))
def test_anything_a_remote_says_can_be_stored(said: str) -> None:
    for text in (to_json({"said": said}), storable(said)):
        text.encode()
        assert "\0" not in text
    assert json.loads(to_json({"said": said}))["said"] == said
    assert len(storable(said * 10, 7)) <= 7


class TestOperationKey:
    PARTS = ("uid", 1, 2, 1, "pay@1", '{"amount":"80.00"}')

    def test_is_the_same_for_every_attempt(self) -> None:
        assert "attempt" not in operation_key.__code__.co_varnames
        assert operation_key(*self.PARTS) == operation_key(*self.PARTS)

    @pytest.mark.parametrize("part", range(6))
    def test_changes_with_every_part(self, part: int) -> None:
        other = list(self.PARTS)
        other[part] = other[part] + (1 if isinstance(other[part], int) else "x")  # type: ignore[operator]
        assert operation_key(*other) != operation_key(*self.PARTS)  # type: ignore[arg-type]

    def test_parts_do_not_run_into_each_other(self) -> None:
        assert operation_key("u", 1, 12, 1, "d", "{}") != operation_key("u", 11, 2, 1, "d", "{}")

    def test_is_not_the_digest_of_an_action(self) -> None:
        assert operation_key(*self.PARTS) != action_digest(*self.PARTS, [])


class TestActionDigest:
    PARTS = ("uid", 1, 2, 1, "pay@1", "{}", ["order:1"])

    @pytest.mark.parametrize("part", range(7))
    def test_changes_with_every_part(self, part: int) -> None:
        other: list[Any] = list(self.PARTS)
        other[part] = [*other[part], "x"] if part == 6 else other[part] + (1 if isinstance(other[part], int) else "x")
        assert action_digest(*other) != action_digest(*self.PARTS)
