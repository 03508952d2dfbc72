"""Hashes of events: what the chain is made of."""

import hashlib
import json
from collections.abc import Iterator

from runs.engine import events as e
from runs.engine.canonical import canonical
from runs.models import Event, Run

DOMAIN = "agentops/event/v1"


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


def event_faults(run: Run, event: Event, entry: e.Entry, previous: bytes) -> Iterator[str]:
    """What is wrong with one event, given the hash of the event before it."""
    digest = bytes(event.payload_digest) if event.payload_digest is not None else None
    state = bytes(event.state_digest) if event.state_digest is not None else None
    if event.payload is not None and sha(event.payload) != digest:
        yield f"event {event.seq}: its payload was changed"
    if event_hash(run.uid, entry, event.body, digest, state, previous) != bytes(event.hash):
        yield f"event {event.seq}: its hash does not match its content"


def decided(run: int, turn: int, ordinal: int, n: int) -> set[tuple[int | None, str]]:
    """(person, vote) of an approval as the record has them. Raises `ValueError` if one of the events was changed."""
    votes = set()
    for event in Event.objects.filter(run=run, turn=turn, ordinal=ordinal, kind="Decided").select_related("run"):
        before = Event.objects.get(run=run, seq=event.seq - 1)
        if list(event_faults(event.run, event, entry_of(event), bytes(before.hash))):
            raise ValueError(f"event {event.seq}, a decision, was changed")
        body = json.loads(event.body)
        votes |= {(event.person_id, body["vote"])} if body["n"] == n else set()
    return votes
