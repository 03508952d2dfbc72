"""Form and samples of everything that is stored by the engine, and the files in which those of each version are kept.

`python -m tests.versions.shapes` adds what has no sample yet. It never changes one that is there: those stand for what
is stored in databases of people.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from runs.engine import events as e
from runs.engine import state as s
from runs.engine.evolve import fold
from runs.engine.limits import Limits
from tests.engine.making import Play
from tests.engine.test_events import bare, filled

HERE = Path(__file__).parent
EVENTS, STATES, HISTORIES = HERE / "events.json", HERE / "states.json", HERE / "histories.json"


def shape(cls: Any) -> dict[str, list[Any]]:
    """Name -> [type, default] of each field; a default is part of it, for fields that have theirs are not stored."""
    if issubclass(cls, Limits):
        return {name: [str(f.annotation), f.default] for name, f in cls.model_fields.items()}
    return {f.name: [str(getattr(f.type, "__name__", f.type)), _default(f)] for f in fields(cls)}


def _default(field: Any) -> Any:
    if field.default_factory is not MISSING:
        made = field.default_factory()
        return made if isinstance(made, list | dict) else type(made).__name__
    if field.default is MISSING:
        return "required"
    return field.default if isinstance(field.default, str | int | bool | None) else type(field.default).__name__


def plain(value: Any) -> Any:
    """As JSON would have it."""
    return json.loads(json.dumps(value))


def state_shape() -> dict[str, Any]:
    """The fields of a state and of all that is in it."""
    return {cls.__name__: plain(shape(cls)) for cls in (s.RunState, s.CallState, s.Ask, s.Counts, s.Stop, Limits)}


def full_state() -> s.RunState:
    """A state of which no field has its default."""
    call = s.CallState(**{f.name: _other(f) for f in fields(s.CallState)})
    parts = {
        "ask": s.Ask(2, 1, 3, 4, "429"), "n": s.Counts(1, 2, 3, 4, 5, 6, 7, 8), "calls": {1: call},
        "stop": s.Stop("needs_human", "give_up"), "limits": Limits(turns=7, probes=(1, 2)),
        "checks": [{"tool": "pay"}], "notes": [3], "met": ["paid"], "effects": {"pay": 1},
    }  # fmt: skip
    rest = {f.name: _other(f) for f in fields(s.RunState) if f.name not in parts}
    return s.RunState(**parts, **rest)


def _other(field: Any) -> Any:
    plain_value = field.default if field.default is not MISSING else field.default_factory()
    if isinstance(plain_value, bool):
        return not plain_value
    return {int: 7, str: "x", list: [1], dict: {"k": "v"}}[type(plain_value)]


class Written(Play):
    """A played run in which people edit too, and which goes on being written to after its end."""

    def edit(self) -> None:
        for ordinal, old in self.state.having("waiting").items():
            if old.pending and not old.maybe_sent:
                self.put(e.CallEdited("other", old.args, "less"), ordinal, person=1)
                self.put(e.ApprovalClosed(old.approval, "superseded"), ordinal)
                self.put(
                    e.CallJudged(old.label, old.tool, old.definition, str(old.effect), "other", old.objects, "allow"),
                    ordinal, revision=old.revision + 1,
                )  # fmt: skip
                return

    def host(self, name: str) -> None:
        if name != "finish" or self.random.random() < 0.5:
            super().host(name)
            return
        self.put(e.CallJudged("h", name, "finish@1", "host", verdict="allow"), 1)
        self.put(e.FinishClaimed(["call:1.1"]), 1)
        self.put(e.RunEnded("succeeded"))

    def afterwards(self) -> None:
        self.put(e.NoteAdded("for the record"), person=1)
        self.put(e.IncidentOpened("it happened after all"))
        self.put(e.IncidentClosed(len(self.entries), "found out"), person=1)
        self.put(e.SignedOff("looked"), person=1)
        self.put(e.PayloadErased(2), person=1)


def played(seed: int) -> Written:
    """One run from its start to its end, as this code records it."""
    play = Written(random.Random(seed))
    for _ in range(400):
        if play.state.end:
            break
        roll = play.random.random()
        if roll < 0.03:
            play.crash()
        elif roll < 0.1:
            play.person()
        elif roll < 0.2:
            play.edit()
        elif roll < 0.21:
            play.put(e.LimitsChanged({"turns": 40}, "more"), person=1)
        elif play.held and roll < 0.6:
            play.land()
        else:
            play.obey(play.step())
    play.afterwards()
    return play


def history(play: Play) -> dict[str, Any]:
    """Entries and the state that they fold to."""
    entries = [{**vars(entry), "fact": [entry.fact.kind, e.dump(entry.fact)]} for entry in play.entries]
    return {"entries": entries, "state": s.dumps(play.state)}


def entries_of(stored: dict[str, Any]) -> list[e.Entry]:
    """The entries of a stored history."""
    return [e.Entry(**{**row, "fact": e.load(*row["fact"])}) for row in stored["entries"]]


def version_of(play: Play) -> str:
    """What a history was written by: the state's version and those of the events that are not at 1."""
    raised = sorted(f"{kind}{cls.VERSION}" for kind, cls in e.KINDS.items() if cls.VERSION > 1)
    return "-".join([f"state{s.VERSION}", *raised])


def histories(wanted: set[str]) -> list[dict[str, Any]]:
    """As few played runs as show all of these kinds, by trying seeds."""
    found, missing = [], set(wanted)
    for seed in range(2000):
        play = played(seed)
        assert fold(play.entries) == play.state
        if new := {entry.fact.kind for entry in play.entries} & missing:
            found.append(history(play))
            missing -= new
        if not missing:
            return found
    raise SystemExit(f"no played run has {sorted(missing)}: teach `Written` to record them")


def kept(path: Path) -> dict[str, Any]:
    """What a file holds; empty if there is none."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write() -> None:
    """Add the samples that are missing."""
    events, states, runs = kept(EVENTS), kept(STATES), kept(HISTORIES)
    for kind, cls in e.KINDS.items():
        bodies = [e.dump(filled(cls)), e.dump(bare(cls))]
        new = {"shape": plain(shape(cls)), "bodies": bodies}
        events.setdefault(kind, {}).setdefault(str(cls.VERSION), new)
    states.setdefault(str(s.VERSION), {"shape": state_shape(), "text": s.dumps(full_state())})
    name = version_of(played(0))
    if name not in runs:
        runs[name] = histories(set(e.KINDS))
    for path, content in ((EVENTS, events), (STATES, states), (HISTORIES, runs)):
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(write())
