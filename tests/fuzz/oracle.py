"""What must hold, whatever happened; judged on the remote's own ledger and on the record. And what was seen."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from runs.engine import machines
from runs.engine.events import KINDS
from runs.engine.evolve import evolve
from runs.engine.state import RunState
from runs.journal.chain import entry_of
from runs.journal.verify import verify
from runs.models import Approval, Call, Event, Run
from tests.fuzz.world import World

POINTS = (
    "after_ask", "after_intent", "before_send", "after_effect", "after_outcome", "before_append", "after_append",
    "after_decision",
)  # fmt: skip
NEVER_STARTED = ("denied", "refused", "expired", "withdrawn", "invalid")
# Payloads are erased by a person's right to be forgotten, which has no action yet; segments roll over by bytes, and the
# scenarios are too short for a second one (the first is seen).
UNSEEN_KINDS = {"PayloadErased"}
UNSEEN_MOVES = {
    ("call", "proposed", "done"),  # of host tools, in the very event that proposes them
    ("call", "waiting", "denied"),  # an edit that would be denied, or is invalid, is refused and writes nothing
    ("call", "waiting", "invalid"),
    ("call", "ready", "expired"),  # what was approved in time does not expire: no rule of today asks for it
    ("approval", "approved", "expired"),
}


@dataclass
class Seen:
    """What a batch of scenarios came upon, for coverage and for the table of figures."""

    scenarios: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    moves: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    tally: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        """Take in a scenario."""
        self.scenarios += 1
        self.points.update(world.points)
        self.killed.update(world.killed)
        self.faults.update(world.remote.fired)
        self.refused.update(world.people.refused)
        self.tally["takeovers"] += world.takeovers
        self.tally["frozen"] += world.zombies

    def missing(self) -> list[str]:
        """Everything that can be emitted and was not: then the batch counts as not tested."""
        lacks = [f"event {kind}" for kind in KINDS if kind not in UNSEEN_KINDS and not self.kinds[kind]]
        tables = {"call": machines.CALL, "approval": machines.APPROVAL}
        moves = {(name, old, new) for name, t in tables.items() for old, news in t.items() for new in news}
        lacks += [" ".join(move) for move in sorted(moves - UNSEEN_MOVES) if not self.moves[move]]
        return lacks + [f"kill at {name}" for name in POINTS if not self.killed[name]]


def judge(world: World, seen: Seen) -> None:
    """Check one scenario after it has come to rest. Raises AssertionError with what is wrong."""
    started = _starts(world)
    effects: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for effect in world.remote.effects():
        if effect["kind"] == "delivery_note":
            continue  # repeat-safe: the same note may be set again
        key = world.key_of(effect)
        assert key in started, f"an effect without an intent: {effect}"
        first = started[key][0]
        assert first["at"] <= effect["at"], f"an effect before its intent: {effect} {first}"
        effects[first["place"]].append(effect)
    seen.tally["effects"] += sum(map(len, effects.values()))
    for place, found in effects.items():
        again = sum(start["via"] == "again" for start in started[world.key_of(found[0])])
        if len(found) > 1:
            # Only a person who says "do it again" may cause a second one, and only where no key protects.
            said = world.people.attested.get(place[:3]) == "again" or again
            assert said and found[0]["kind"] in ("message", "pickup"), f"{place} happened {len(found)} times: {found}"
            seen.tally["by people's word"] += 1
    for run in Run.objects.filter(pk__in=world.runs):
        _judge_run(world, run, effects, seen)
    seen.add(world)


def _starts(world: World) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in Event.objects.filter(run__in=world.runs, kind="CallStarted").order_by("run_id", "seq"):
        body = json.loads(event.body)
        place = (event.run_id, event.turn, event.ordinal, event.revision)
        assert not found[body["key"]] or found[body["key"]][0]["place"] == place, f"one key for two calls: {place}"
        found[body["key"]].append({"place": place, "at": event.at, "via": body["via"]})
    places: dict[Any, set[str]] = defaultdict(set)
    for key, starts in found.items():
        places[starts[0]["place"]].add(key)
    assert all(len(keys) == 1 for keys in places.values()), f"a call under two keys: {dict(places)}"
    return found


def _judge_run(world: World, run: Run, effects: dict[Any, list[dict[str, Any]]], seen: Seen) -> None:
    faults = verify(run)
    assert faults == [], f"run {world.runs.index(run.pk)} does not verify: {faults}"
    assert run.ended and run.lease_until is None and run.due_at is None, (
        f"a run that has ended is at rest: {run.status}"
    )
    stops = [json.loads(x.body) for x in Event.objects.filter(run=run, kind="RunStopped")]
    ours = ("error", "unreadable") if world.people.tampered else ("error", "integrity", "unreadable")
    bugs = [stop for stop in stops if stop["reason"] in ours]
    assert not bugs, f"the host stopped the run because of itself: {bugs}"
    told = [(x.turn, x.ordinal) for x in Event.objects.filter(run=run, kind="IncidentOpened")]
    for call in Call.objects.filter(run=run):
        happened = [e for place, es in effects.items() if place[:3] == (run.pk, call.turn, call.ordinal) for e in es]
        here, word = (call.turn, call.ordinal), world.people.attested.get((run.pk, call.turn, call.ordinal))
        seen.tally[f"{call.effect} {call.status}"] += 1
        assert call.status in machines.CALL_ENDS, f"{here} is {call.status} in a run that has ended"
        if call.status in NEVER_STARTED:
            assert not happened, f"{here} is {call.status} and happened"
        if call.status == "not_executed" and happened:
            seen.tally["wrong"] += 1
            assert here in told or word, f"{here} is not executed, happened, and there is no incident"
        if call.status == "done" and call.outcome == "ok" and call.effect in ("keyed", "lookup", "opaque"):
            assert happened or word, f"{here} counts as done and never happened"
        if call.status == "done" and call.outcome in ("declined", "fatal", "retryable") and not word:
            assert not happened or here in told, f"{here} counts as {call.outcome} and happened"
    _judge_history(run, seen)


def _judge_history(run: Run, seen: Seen) -> None:
    state, epoch, asked = RunState(), 0, {}
    used: Counter[Any] = Counter()
    for event in Event.objects.filter(run=run).order_by("seq"):
        entry = entry_of(event)
        old, (state, touched) = state, evolve(state, entry)
        seen.kinds[event.kind] += 1
        assert event.epoch >= epoch, f"event {event.seq} was written by epoch {event.epoch} after {epoch}"
        epoch = event.epoch
        for ordinal in touched:
            was, now = old.calls.get(ordinal), state.calls[ordinal]
            before = was.status if was and old.turn == state.turn else "proposed"
            seen.moves["call", before, now.status] += before != now.status
            name = (state.turn, ordinal, now.approval)
            if now.approval:
                seen.moves["approval", asked.get(name, "pending"), now.approval_status] += 1
                asked[name] = now.approval_status
                consumed = event.kind == "CallStarted" and now.approval_status == "consumed"
                used[name] += consumed and was is not None and was.approval_status == "approved"
    assert all(n <= 1 for n in used.values()), f"an approval was consumed twice: {used}"
    open_ones = Approval.objects.filter(run=run, status__in=("pending", "approved"))
    left = [a for a in open_ones if a.status == "pending"]
    assert not left, f"an ended run still asks: {left}"
