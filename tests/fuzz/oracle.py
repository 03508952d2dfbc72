"""What must hold, whatever happened; judged on the remote's own ledger and on the record. And what was seen."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from runs.engine import events as e
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
    "after_decision", "after_claim",
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
# The scripts do not know a key that is refused and cost nothing; nothing here is restored or uninstalled; `error` is a
# bug of ours.
UNSEEN_REASONS = {"auth", "billing", "budget", "context", "request", "restored", "unreadable", "error"}
# Both winners of each race, as (name, how it is told); those that are moves of a table stand there already.
RACES = (
    "approve 200", "approve 409", "approve 410", "approve 412", "approve 403", "reject 200", "reject 409", "edit 200",
    "edit 409", "edit 422", "attest 200", "attest 409", "cancel 200", "cancel 409", "answer 200", "pause 200",
    "resume 200", "resume 409", "extend 200", "policy 200", "policy 403", "note 200", "sign_off 200", "sign_off 409",
    "close_failed 200", "close_failed 409", "close_incident 200", "claim won", "claim lost", "take-over",
    "append refused", "frozen between steps", "frozen in mid-step", "intent before cancel", "cancel before intent",
    "via allow", "via approval", "via again", "proof class", "proof resend", "proof lookup", "proof quiesced_lookup",
    "proof late_evidence", "proof human",
)  # fmt: skip
EFFECTS = ("keyed", "lookup", "opaque")
FIGURES = ("expected", "executed", "lost", "duplicated", "stuck", "unknown_settled", "unknown_person", "unknown_wrong",
           "stale")  # fmt: skip


@dataclass
class Row:
    """One line of the table of figures: a fault, at a place."""

    trials: int = 0
    fired: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    recover_ms: list[int] = field(default_factory=list)


@dataclass
class Seen:
    """What a batch of scenarios came upon, for coverage and for the table of figures."""

    scenarios: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    moves: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)  # names of RACES, and more of the kind
    figures: Counter[str] = field(default_factory=Counter)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    def add(self, world: World, figures: Counter[str]) -> None:
        """Take in a scenario that has come to rest, or broken."""
        self.scenarios += 1
        self.points.update(world.points)
        self.killed.update(world.killed)
        self.statuses.update(world.statuses)
        self.told.update(world.counts)
        self.told.update({f"{act} {status}": n for (act, status), n in world.people.did.items()})
        self.figures.update(figures)
        fired = Counter({("everything at once", "everywhere"): 1})
        fired.update(("kill", name) for name in world.killed)
        fired.update({(f"remote: {kind}", "request"): n for kind, n in world.remote.fired.items()})
        for name, where in (("frozen", "between steps"), ("frozen", "in mid-step")):
            fired[name, where] += world.counts[f"{name} {where}"]
        for place, times in fired.items():
            if times:
                row = self.rows.setdefault(place, Row())
                row.trials, row.fired = row.trials + 1, row.fired + times
                row.figures.update(figures)
                row.recover_ms += world.recovered if place[0] == "kill" else []

    def missing(self) -> list[str]:
        """Everything that can be emitted and was not: then the batch counts as not tested."""
        lacks = [f"event {kind}" for kind in KINDS if kind not in UNSEEN_KINDS and not self.kinds[kind]]
        tables = {"call": machines.CALL, "approval": machines.APPROVAL}
        moves = {(name, old, new) for name, t in tables.items() for old, news in t.items() for new in news}
        lacks += [" ".join(move) for move in sorted(moves - UNSEEN_MOVES) if not self.moves[move]]
        lacks += [f"run {status}" for status in machines.RUN if not self.statuses[status]]
        lacks += [f"stop {r}" for r in machines.STOP_REASONS if r not in UNSEEN_REASONS and not self.reasons[r]]
        lacks += [f"{name}, of a race" for name in RACES if not self.told[name]]
        return lacks + [f"kill at {name}" for name in POINTS if not self.killed[name]]


def judge(world: World, seen: Seen) -> None:
    """Check one scenario after it has come to rest. Raises AssertionError with all that is wrong."""
    wrong, figures = list(world.wrong), Counter[str]()
    figures["stale"] = sum(text.startswith("stale") for text in wrong)
    figures["stuck"] = sum(text.startswith("stuck") for text in wrong)
    effects = _effects(world, wrong, figures)
    for run in Run.objects.filter(pk__in=world.runs).order_by("pk"):
        name = f"run {world.runs.index(run.pk)}"
        wrong += [f"{name} does not verify: {fault}" for fault in verify(run)]
        wrong += [f"{name}: {text}" for text in _wrong_with(world, run, seen)]
        _judge_calls(world, run, effects, wrong, figures)
        wrong += [f"{name}: {text}" for text in _wrong_history(run, seen, figures)]
    seen.add(world, figures)
    assert not wrong, "; ".join(wrong)


def _effects(world: World, wrong: list[str], figures: Counter[str]) -> dict[Any, list[dict[str, Any]]]:
    """What really happened, by call and revision; every effect has an intent with its key that is older."""
    started = _starts(world, wrong)
    effects: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for effect in world.remote.effects():
        if effect["kind"] == "delivery_note":
            continue  # repeat-safe: the same note may be set again
        figures["executed"] += 1
        key = world.key_of(effect)
        if key not in started:
            wrong.append(f"an effect without an intent: {effect}")
            continue
        first = started[key][0]
        if first["at"] > effect["at"]:
            wrong.append(f"an effect before its intent: {effect} {first}")
        effects[first["place"]].append(effect)
    keys = Counter(effect["key"] for found in effects.values() for effect in found if effect["kind"] != "pickup")
    wrong += [f"key {key} had {n} effects" for key, n in keys.items() if key and n > 1]
    for place, found in effects.items():
        if len(found) > 1:
            # Only a person who says "do it again" may cause a second one, and only where no key protects.
            again = any(start["via"] == "again" for start in started[world.key_of(found[0])])
            said = again or world.people.attested.get(place[:3]) == "again"
            if said and found[0]["kind"] in ("message", "pickup"):
                figures["by people's word"] += len(found) - 1
            else:
                figures["duplicated"] += len(found) - 1
                wrong.append(f"{place[1:]} happened {len(found)} times: {found}")
    return effects


def _starts(world: World, wrong: list[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in Event.objects.filter(run__in=world.runs, kind="CallStarted").order_by("run_id", "seq"):
        body = json.loads(event.body)
        place = (event.run_id, event.turn, event.ordinal, event.revision)
        if found[body["key"]] and found[body["key"]][0]["place"] != place:
            wrong.append(f"one key for two calls: {place}")
        found[body["key"]].append({"place": place, "at": event.at, "via": body["via"]})
    places: dict[Any, set[str]] = defaultdict(set)
    for key, starts in found.items():
        places[starts[0]["place"]].add(key)
    wrong += [f"{place} went out under {len(keys)} keys" for place, keys in places.items() if len(keys) > 1]
    return found


def _wrong_with(world: World, run: Run, seen: Seen) -> Iterator[str]:
    """The run as a whole: at rest, stopped by nothing of ours, succeeded only on evidence."""
    if not run.ended or run.lease_until is not None or run.due_at is not None:
        yield f"it has not come to rest: {run.status}, due {run.due_at}, leased {run.lease_until}"
    stops = [json.loads(x.body) for x in Event.objects.filter(run=run, kind="RunStopped")]
    seen.reasons.update(stop["reason"] for stop in stops)
    ours = ("error", "unreadable") if world.people.tampered else ("error", "integrity", "unreadable")
    yield from (f"the host stopped it because of itself: {stop}" for stop in stops if stop["reason"] in ours)
    if run.status == "succeeded":
        claim = Event.objects.filter(run=run, kind="FinishClaimed").order_by("seq").last()
        cited = json.loads(claim.body).get("evidence", []) if claim else []
        proofs = {f"call:{c.turn}.{c.ordinal}" for c in Call.objects.filter(run=run, status="done", outcome="ok")}
        proofs |= {x for c in Call.objects.filter(run=run, status="done", outcome="ok") for x in c.evidence}
        met = {x for c in Call.objects.filter(run=run, status="done", outcome="ok") for x in c.met}
        if claim is None or not set(cited) <= proofs:
            yield f"it succeeded on evidence that it does not have: {cited}"
        if lacking := [c["id"] for c in run.picture.checks if c["id"] not in met]:
            yield f"it succeeded without {lacking}"
    open_ones = Approval.objects.filter(run=run, status__in=("pending", "approved"))
    yield from (f"it has ended and still asks: {a.turn}.{a.ordinal}" for a in open_ones if a.status == "pending")


def _judge_calls(world: World, run: Run, effects: dict[Any, Any], wrong: list[str], figures: Counter[str]) -> None:
    """Each call: what the record says of it is what the remote's ledger says, or a person was told."""
    told = [(x.turn, x.ordinal) for x in Event.objects.filter(run=run, kind="IncidentOpened")]
    name = f"run {world.runs.index(run.pk)} call"
    for call in Call.objects.filter(run=run).order_by("turn", "ordinal"):
        happened = [x for place, xs in effects.items() if place[:3] == (run.pk, call.turn, call.ordinal) for x in xs]
        here, word = (call.turn, call.ordinal), world.people.attested.get((run.pk, call.turn, call.ordinal))
        what = f"{name} {call.turn}.{call.ordinal} {call.tool}"
        figures[f"{call.effect} {call.status}"] += 1
        if call.status not in machines.CALL_ENDS:
            wrong.append(f"{what} is {call.status} in a run that has ended")
        if call.status in NEVER_STARTED and happened:
            wrong.append(f"{what} is {call.status} and happened")
        if call.status == "not_executed" and happened:
            figures["unknown_wrong"] += 1
            if here not in told and not word:
                wrong.append(f"{what} is not executed, happened, and there is no incident")
        if call.status == "done" and call.outcome == "ok" and call.effect in EFFECTS:
            figures["expected"] += not word or bool(happened)
            if not happened and not word:
                figures["lost"] += 1
                wrong.append(f"{what} counts as done and never happened")
        failed = call.status == "done" and call.outcome in ("declined", "fatal", "retryable")
        if failed and happened and not word and here not in told:
            wrong.append(f"{what} counts as {call.outcome} and happened")
    figures["unknown_person"] += sum(place[0] == run.pk for place in world.people.attested)


def _wrong_history(run: Run, seen: Seen, figures: Counter[str]) -> Iterator[str]:
    """The events in their order: epochs rise, approvals are consumed once, and what was never started never was."""
    state, epoch, asked = RunState(), 0, {}
    used: Counter[Any] = Counter()
    for event in Event.objects.filter(run=run).order_by("seq"):
        entry = entry_of(event)
        old, (state, touched) = state, evolve(state, entry)
        seen.kinds[event.kind] += 1
        if event.epoch < epoch:
            yield f"event {event.seq} was written by epoch {event.epoch} after {epoch}"
        epoch = event.epoch
        _tell(entry.fact, old, state, touched, seen.told)
        figures["unknown_settled"] += isinstance(entry.fact, e.CallSettled) and entry.fact.proof != "human"
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
    yield from (f"approval {name} was consumed {n} times" for name, n in used.items() if n > 1)


def _tell(fact: e.Fact, old: RunState, state: RunState, touched: Iterable[int], told: Counter[str]) -> None:
    """Who won which race."""
    match fact:
        case e.CallStarted(via=via):
            told[f"via {via}"] += 1
        case e.CallSettled(proof=proof):
            told[f"proof {proof}"] += 1
        case e.CallEnded(after_cancel=True):
            told["intent before cancel"] += 1
        case e.CancelAsked():
            was_ready = any(old.calls[o].status == "ready" and state.calls[o].status == "withdrawn" for o in touched)
            told["cancel before intent"] += was_ready
