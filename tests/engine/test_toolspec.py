"""A tool is a typed function: what it does not name is refused, what it names is not coerced."""

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from runs.engine.toolspec import Effect, InvalidArguments, ToolSpec, spec_of


def refund(
    ctx: Any, *, order_id: Annotated[str, Field(pattern=r"^O-\d+$")], cents: int, currency: Literal["EUR"] = "EUR",
    loud: bool = False, rate: float = 1.0,
) -> None:  # fmt: skip
    """Pay back."""


GOOD = {"order_id": "O-1", "cents": 5}
SPEC = spec_of(refund, objects=("order:{order_id}",), headline="Pay {cents}", sensitive=("cents",))
BAD = {
    "an extra argument": ({**GOOD, "admin": True}, "admin"),
    "a missing one": ({"order_id": "O-1"}, "cents"),
    "a number as text": ({**GOOD, "cents": "5"}, "cents"),
    "a whole number as a real": ({**GOOD, "cents": 5.0}, "cents"),
    "a boolean as a number": ({**GOOD, "cents": True}, "cents"),
    "a number as a boolean": ({**GOOD, "loud": 1}, "loud"),
    "a number as text, the other way": ({**GOOD, "order_id": 1}, "order_id"),
    "nothing": ({**GOOD, "cents": None}, "cents"),
    "against the pattern": ({**GOOD, "order_id": "X"}, "order_id"),
    "another literal": ({**GOOD, "currency": "USD"}, "currency"),
    "a list": ([1], "arguments"),
}


@pytest.mark.parametrize(("given", "names"), BAD.values(), ids=BAD.keys())
def test_arguments_that_do_not_fit_are_refused_by_name(given: Any, names: str) -> None:
    with pytest.raises(InvalidArguments, match=names):
        SPEC.check(json.dumps(given))


@pytest.mark.parametrize("text", ["{", '{"order_id":"O-1","cents":5,"cents":6}', '{"order_id":"O-1","cents":1e400}'])
def test_arguments_that_are_not_strict_json_are_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        SPEC.check(text)


def test_defaults_are_filled_in_so_that_people_see_them() -> None:
    assert SPEC.check(json.dumps(GOOD)) == '{"cents":5,"currency":"EUR","loud":false,"order_id":"O-1","rate":1}'


def test_what_was_checked_checks_again_to_the_same_bytes() -> None:
    once = SPEC.check(json.dumps({**GOOD, "rate": 1.5}))
    assert SPEC.check(once) == once


def test_an_unnamed_effect_class_is_the_most_careful_one() -> None:
    assert SPEC.effect is Effect.OPAQUE


def test_objects_and_headline_come_from_the_arguments() -> None:
    args = json.loads(SPEC.check(json.dumps(GOOD)))
    assert SPEC.object_keys(args) == ("order:O-1",)
    assert SPEC.headline_for(args) == "Pay 5"


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({}, False), ({"headline": "Other"}, False), ({"deadline": 3.0}, False), ({"version": 2}, True),
        ({"effect": Effect.LOOKUP}, True), ({"sensitive": ("order_id",)}, True), ({"objects": ()}, True),
    ],
)  # fmt: skip
def test_the_definition_changes_with_what_was_approved(changed: dict[str, Any], differs: bool) -> None:
    fields: dict[str, Any] = {"objects": ("order:{order_id}",), "sensitive": ("cents",), "headline": "Pay {cents}"}
    assert (spec_of(refund, **(fields | changed)).definition != SPEC.definition) is differs


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"effect": Effect.KEYED}, "retention"),
        ({"effect": "keyed"}, "retention"),
        ({"effect": "sometimes"}, "sometimes"),
        ({"risk": "extreme"}, "extreme"),
        ({"sensitive": ("amount",)}, "amount"),
        ({"objects": ("order:{order}",)}, "order"),
        ({"headline": "Pay {amount}"}, "amount"),
    ],
)
def test_a_spec_that_could_not_be_enforced_is_refused_at_import(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        spec_of(refund, **fields)


@pytest.mark.parametrize("name", ["", "Refund", "1st", "re-fund", "a" * 65, "rm\n", "é"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        ToolSpec(name=name, description="", arguments=SPEC.arguments)


def test_a_parameter_without_a_type_is_refused() -> None:
    def loose(ctx: Any, *, anything) -> None:  # type: ignore[no-untyped-def]
        """Whatever."""

    with pytest.raises(TypeError, match="anything"):
        spec_of(loose)
