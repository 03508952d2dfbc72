"""Only outcomes of this run, newer than the last change of what they show, turn a claim into success."""

from typing import Any

import pytest

from runs.engine.acceptance import Proof, meets, missing

CHECK = {"id": "paid", "tool": "refund", "field": "order_id", "equals_input": "order_id"}
INPUTS = {"order_id": "O-1"}


@pytest.mark.parametrize(
    ("tool", "args", "data", "met"),
    [
        ("refund", {"order_id": "O-1"}, {}, True),
        ("refund", {"order_id": "O-2"}, {"order_id": "O-1"}, True),
        ("refund", {"order_id": "O-1"}, {"order_id": "O-2"}, False),
        ("refund", {}, {"order_id": "O-1"}, True),
        ("refund", {}, {}, False),
        ("refund", {}, "O-1", False),
        ("other", {"order_id": "O-1"}, {}, False),
    ],
)
def test_a_check_is_met_by_tool_field_and_input(tool: str, args: dict[str, Any], data: Any, met: bool) -> None:
    assert meets([CHECK], tool, args, data, INPUTS) == (["paid"] if met else [])


def test_a_check_on_an_input_that_was_not_given_is_never_met() -> None:
    assert meets([CHECK], "refund", {"order_id": None}, {}, {}) == []


def test_a_check_on_a_tool_alone_is_met_by_any_ok_outcome() -> None:
    assert meets([{"id": "seen", "tool": "look"}], "look", {}, None, {}) == ["seen"]
    assert meets([{"id": "seen", "tool": "look", "field": "x"}], "look", {}, {"y": 1}, {}) == []


def proof(seq: int, **fields: Any) -> Proof:
    fields = {"evidence": ("order:O-1:v1",), "objects": ("order:O-1",), "met": ("paid",), **fields}
    return Proof(f"call:1.{seq}", "refund", seq, **fields)


class TestAFinish:
    def test_is_accepted_on_fresh_evidence(self) -> None:
        assert missing([CHECK], ["order:O-1:v1", "call:1.1"], [proof(1)]) == []

    def test_lacks_a_check_that_nothing_met(self) -> None:
        assert missing([CHECK], [], [proof(1, met=())]) == [
            "check paid: an ok outcome of refund whose order_id is the input order_id,"
            " newer than the last change of what it shows"
        ]

    @pytest.mark.parametrize("cited", ["call:9.9", "order:O-1:v2", "order:O-1", "call:1", "", "order:O-1:v1 "])
    def test_lacks_evidence_that_is_not_of_this_run(self, cited: str) -> None:
        (lack,) = missing([], [cited], [proof(1)])
        assert "not from an ok outcome of this run" in lack

    def test_names_each_missing_evidence_once(self) -> None:
        assert len(missing([], ["x", "x", "y"], [])) == 2

    @pytest.mark.parametrize("cited", ["order:O-1:v1", "call:1.1"])
    def test_lacks_evidence_older_than_a_change(self, cited: str) -> None:
        change = proof(2, evidence=("refund:R-1:v1",), changed=("order:O-1",), met=())
        lacks = missing([CHECK], [cited], [proof(1), change])
        assert len(lacks) == 2 and "read it again" in lacks[1]

    def test_is_accepted_when_it_was_read_again(self) -> None:
        change = proof(2, changed=("order:O-1",), met=(), evidence=())
        assert missing([CHECK], ["order:O-1:v2"], [proof(1), change, proof(3, evidence=("order:O-1:v2",))]) == []

    def test_sees_a_change_of_an_object_that_the_tool_did_not_name_as_its_own(self) -> None:
        seen = proof(1, evidence=("order:O-1:v1", "shipment:L-8:v1"))
        change = proof(2, evidence=(), met=(), objects=("shipment:L-8",), changed=("shipment:L-8",))
        assert "read it again" in missing([], ["shipment:L-8:v1"], [seen, change])[0]
        assert missing([], ["order:O-1:v1"], [seen, change]) == []
        assert len(missing([CHECK], [], [seen, change])) == 1

    def test_does_not_mistake_one_object_for_another(self) -> None:
        change = proof(2, evidence=(), met=(), objects=("order:O-11",), changed=("order:O-11", "order:O-"))
        assert missing([CHECK], ["order:O-1:v1"], [proof(1), change]) == []

    def test_an_effect_is_not_older_than_itself(self) -> None:
        assert (
            missing([CHECK], ["refund:R-1:v1"], [proof(1, evidence=("refund:R-1:v1",), changed=("order:O-1",))]) == []
        )
