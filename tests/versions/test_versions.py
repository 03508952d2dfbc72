"""What was ever stored can be read: bodies, states and whole histories of every version are kept here and loaded.

If one of these fails because you changed a body or the state: raise its VERSION, say in OLDER how the old form is
read, and run `python -m tests.versions.shapes`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from runs.engine import events as e
from runs.engine import state as s
from runs.engine.evolve import fold
from tests.versions import shapes

EVENTS, STATES, HISTORIES = (shapes.kept(path) for path in (shapes.EVENTS, shapes.STATES, shapes.HISTORIES))
BODIES = [(kind, version) for kind, versions in EVENTS.items() for version in versions]


@pytest.mark.parametrize("kind", e.KINDS)
def test_an_event_has_a_sample_of_its_version_and_still_its_shape(kind: str) -> None:
    cls = e.KINDS[kind]
    sample = EVENTS.get(kind, {}).get(str(cls.VERSION))
    assert sample, "no sample: run python -m tests.versions.shapes"
    assert shapes.plain(shapes.shape(cls)) == sample["shape"], "the body changed: raise VERSION, and fill in OLDER"


@pytest.mark.parametrize(("kind", "version"), BODIES)
def test_a_body_of_every_version_is_read(kind: str, version: str) -> None:
    for body in EVENTS[kind][version]["bodies"]:
        fact = e.load(kind, body)
        if int(version) == fact.VERSION:
            assert shapes.plain(e.dump(fact)) == body


@pytest.mark.parametrize("version", STATES)
def test_a_state_of_every_version_is_read(version: str) -> None:
    state = s.loads(STATES[version]["text"])
    if int(version) == s.VERSION:
        assert s.dumps(state) == STATES[version]["text"]


def test_the_state_has_a_sample_of_its_version_and_still_its_shape() -> None:
    assert shapes.state_shape() == STATES[str(s.VERSION)]["shape"], "the state changed: raise VERSION"


def test_the_sample_of_a_state_leaves_no_field_at_its_default() -> None:
    state, plain = s.loads(STATES[str(s.VERSION)]["text"]), s.RunState()
    assert [f.name for f in fields(s.RunState) if getattr(state, f.name) == getattr(plain, f.name)] == []


@pytest.mark.parametrize("version", HISTORIES)
def test_histories_of_every_version_fold_to_the_state_that_they_did(version: str) -> None:
    for stored in HISTORIES[version]:
        assert s.dumps(fold(shapes.entries_of(stored))) == stored["state"]


def test_the_histories_have_every_kind_of_event() -> None:
    seen = {row["fact"][0] for runs in HISTORIES.values() for stored in runs for row in stored["entries"]}
    assert seen == set(e.KINDS)


class Grown(e.Fact):
    """A fact whose body changed twice: `name` was once `title`, and `size` came later."""

    VERSION = 3
    OLDER = {1: lambda body: {"name": body["title"]}, 2: lambda body: {"size": 0, **body}}
    name: str
    size: int


class TestABodyThatChanged:
    @pytest.fixture(autouse=True)
    def known(self) -> Any:
        e.KINDS["Grown"] = Grown
        yield
        del e.KINDS["Grown"]

    @pytest.mark.parametrize("body", [{"title": "a"}, {"v": 2, "name": "a"}, {"v": 3, "name": "a", "size": 0}])
    def test_is_read_from_every_version(self, body: dict[str, Any]) -> None:
        assert e.load("Grown", body) == Grown("a", 0)

    def test_is_not_read_from_a_version_that_is_to_come(self) -> None:
        with pytest.raises(e.UnknownEvent, match="version 4"):
            e.load("Grown", {"v": 4, "name": "a"})
