"""Hashes of events, and the check of a whole run: sequence, chain, payloads, fold and rows."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from runs.engine import events as e
from runs.engine.canonical import canonical
from runs.engine.evolve import evolve
from runs.engine.state import RunState, dumps
from runs.journal import rows
from runs.models import Call, Decision, Event, Run

DOMAIN = "agentops/event/v1"
Rows = dict[tuple[int, int], dict[str, Any]]


def sha(text: str) -> bytes:
    """SHA-256 of the UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


def body_text(fact: e.Fact) -> str:
    """Canonical text of an event's body, as stored and as hashed."""
    return canonical(e.dump(fact))


def event_hash(
    uid: str, entry: e.Entry, body: str, payload: bytes | None, state: bytes | None, previous: bytes
) -> bytes:
    """Hash of one event: domain, header, digests, body, hash of the event before. Such a list has one JSON text."""
    parts = [
        DOMAIN, uid, entry.seq, entry.fact.kind, entry.turn, entry.ordinal, entry.revision, entry.actor, entry.person,
        entry.epoch, entry.t, payload.hex() if payload else None, state.hex() if state else None, body, previous.hex(),
    ]  # fmt: skip
    return sha(json.dumps(parts, separators=(",", ":"), ensure_ascii=False))


def entry_of(event: Event) -> e.Entry:
    """The engine's form of a stored event."""
    return e.Entry(
        fact=e.load(event.kind, json.loads(event.body)), turn=event.turn, ordinal=event.ordinal,
        revision=event.revision, actor=event.actor, person=event.person_id, t=event.at, payload=event.payload,
        seq=event.seq, epoch=event.epoch,
    )  # fmt: skip


def verify(run: Run) -> list[str]:
    """What is wrong with a run's record, in words; empty when everything matches."""
    return list(_faults(run))


def _faults(run: Run) -> Iterator[str]:
    state, previous, seq = RunState(), b"", 0
    gone: list[int] = []
    erased: list[int] = []
    expected: Rows = {}
    for event in Event.objects.filter(run=run).order_by("seq").iterator():
        seq += 1
        if event.seq != seq:
            yield f"event {seq} is missing"
            return
        try:
            entry = entry_of(event)
            state, touched = evolve(state, entry)
            _project(expected, run, state, touched, entry)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            yield f"event {seq}: cannot be read or folded: {error}"
            return
        yield from _event_faults(run, event, entry, previous)
        gone += [seq] if event.payload is None and event.payload_digest is not None else []
        erased += [entry.fact.erased] if isinstance(entry.fact, e.PayloadErased) else []
        if event.state_digest is not None and bytes(event.state_digest) != sha(dumps(state)):
            yield f"event {seq}: the state at that point differs from its digest"
        previous = bytes(event.hash)
    if seq != run.seq or previous != bytes(run.head):
        yield f"the run's head names event {run.seq}, the record ends at {seq}"
    if dumps(state) != run.state:
        yield "the run's state is not the fold of its events"
    yield from (f"event {seq}: its payload is gone" for seq in gone if seq not in erased)
    yield from _call_faults(run, expected)
    yield from _people_faults(run)


def _event_faults(run: Run, event: Event, entry: e.Entry, previous: bytes) -> Iterator[str]:
    digest = bytes(event.payload_digest) if event.payload_digest is not None else None
    state = bytes(event.state_digest) if event.state_digest is not None else None
    if event.payload is not None and sha(event.payload) != digest:
        yield f"event {event.seq}: its payload was changed"
    if event_hash(run.uid, entry, event.body, digest, state, previous) != bytes(event.hash):
        yield f"event {event.seq}: its hash does not match its content"


def _project(expected: Rows, run: Run, state: RunState, touched: Iterable[int], entry: e.Entry) -> None:
    """Note what the rows of the calls should say after one more event."""
    for ordinal in touched:
        place = state.turn, ordinal
        expected.setdefault(place, dict(rows.EMPTY)).update(
            rows.call_row(run.pk, place, state.calls[ordinal], [entry])[0]
        )
    row = expected.get((entry.turn, entry.ordinal))
    if isinstance(entry.fact, e.LateEvidence) and not touched and row and row["status"] == "not_executed":
        row.update(rows.late_row(entry, entry.fact))


def _call_faults(run: Run, expected: Rows) -> Iterator[str]:
    """Rows are projections: what would run, and what acceptance is judged on, must be what the record says."""
    for call in Call.objects.filter(run=run):
        row = expected.pop((call.turn, call.ordinal), None)
        if row is None:
            yield f"call {call.turn}.{call.ordinal}: nobody proposed it"
            continue
        stored = {f.column: getattr(call, f.attname) for f in Call._meta.concrete_fields}
        said = {c: json.loads(v) if rows.TYPES.get(c) == "jsonb" else v for c, v in row.items() if c != "arguments"}
        wrong = [column for column, value in said.items() if value != stored[column]]
        wrong += ["arguments"] if row["args_digest"] and sha(call.arguments).hex() != row["args_digest"] else []
        yield from (f"call {call.turn}.{call.ordinal}: its {column} is not that of the record" for column in wrong)
    yield from (f"call {turn}.{ordinal}: its row is missing" for turn, ordinal in expected)


def _people_faults(run: Run) -> Iterator[str]:
    """What people gave and decided stands in rows for pages and in events for proof; the two must say the same."""
    opening = Event.objects.filter(run=run, seq=1).values_list("payload", flat=True).first()
    if opening and json.loads(opening) != {"goal": run.goal, "inputs": run.inputs, "facts": run.facts}:
        yield "the run's goal, inputs or facts are not those that it was started with"
    body = Event.objects.filter(run=run, seq=1).values_list("body", flat=True).first()
    began = json.loads(body) if body else {}
    if (began.get("agent"), began.get("starter")) != (run.agent_version.identity, run.starter_id):
        yield "the run's agent or starter is not the one that it was started with"
    decided = [(event, json.loads(event.body)) for event in Event.objects.filter(run=run, kind="Decided")]
    said = {(x.turn, x.ordinal, body["n"], x.person_id, body["vote"], body.get("why", "")) for x, body in decided}
    fields = ("approval__turn", "approval__ordinal", "approval__n", "person_id", "vote", "why")
    if said != set(Decision.objects.filter(approval__run=run).values_list(*fields)):
        yield "the stored decisions are not those of the record"
