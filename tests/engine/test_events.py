"""Facts are stored by kind and version; what this code does not know it does not guess."""

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest

from runs.engine import events as e
from runs.engine.evolve import EVOLVE

SAMPLES: dict[str, Any] = {"int": 7, "str": "x", "bool": True, "list[str]": ["a"], "list[int]": [1], "Body": {"k": 1}}


def filled(cls: type[e.Fact]) -> e.Fact:
    """A fact of which no field has its default."""
    return cls(
        **{
            f.name: SAMPLES.get(str(getattr(f.type, "__name__", f.type)), SAMPLES.get(str(f.type), ["a"]))
            for f in fields(cls)
        }
    )


def bare(cls: type[e.Fact]) -> e.Fact:
    needed = [f for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    return cls(**{f.name: "x" for f in needed})


@pytest.mark.parametrize("kind", e.KINDS)
class TestEveryKind:
    def test_is_dumped_and_loaded_as_it_was(self, kind: str) -> None:
        for fact in (filled(e.KINDS[kind]), bare(e.KINDS[kind])):
            assert e.load(kind, json.loads(json.dumps(e.dump(fact)))) == fact

    def test_leaves_its_defaults_out(self, kind: str) -> None:
        needed = {f.name for f in fields(e.KINDS[kind]) if f.default is MISSING and f.default_factory is MISSING}
        assert e.dump(bare(e.KINDS[kind])).keys() - {"v"} == needed

    def test_changes_the_state_by_one_entry_of_the_table(self, kind: str) -> None:
        assert e.KINDS[kind] in EVOLVE

    def test_of_a_newer_version_is_refused(self, kind: str) -> None:
        newer = e.KINDS[kind].VERSION + 1
        with pytest.raises(e.UnknownEvent, match=f"version {newer}"):
            e.load(kind, {**e.dump(filled(e.KINDS[kind])), "v": newer})

    def test_with_a_field_that_nobody_knows_is_refused(self, kind: str) -> None:
        with pytest.raises(e.UnknownEvent):
            e.load(kind, {**e.dump(filled(e.KINDS[kind])), "surprise": 1})


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(e.UnknownEvent, match="Nonsense"):
        e.load("Nonsense", {})


def test_the_kinds_are_those_of_the_contract() -> None:
    contract = """RunStarted, SegmentStarted, ModelAsked, ModelAnswered, ModelFailed, CallJudged, ApprovalRequested,
        Decided, CallEdited, CallStarted, CallEnded, CallProbed, CallSettled, ApprovalClosed, QuestionAsked,
        QuestionAnswered, NoteAdded, PauseAsked, Resumed, CancelAsked, LimitsChanged, FinishClaimed, FinishRefused,
        RunStopped, RunEnded, LateEvidence, IncidentOpened, IncidentClosed, SignedOff, PayloadErased"""
    assert set(e.KINDS) == {name.strip() for name in contract.split(",")}
