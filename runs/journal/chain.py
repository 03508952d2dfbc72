"""Hashes of events: what the chain is made of."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from runs.engine import events as e
from runs.engine.canonical import canonical, compact
from runs.models import Event, Run

DOMAIN = "agentops/event/v1"


def sha(text: str) -> bytes:
    """SHA-256 of the UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


def body_text(fact: e.Fact) -> str:
    """Canonical text of an event's body, as stored and as hashed."""
    return canonical(e.dump(fact))


def header(entry: e.Entry) -> list[Any]:
    """Where, by whom and when: the same columns in the row and in the hash."""
    place = [entry.seq, entry.fact.kind, entry.turn, entry.ordinal, entry.revision]
    return [*place, entry.actor, entry.person, entry.epoch, entry.t]


def stored_header(event: Event) -> list[Any]:
    """The same of a stored event, which need not be one that this code can read."""
    place = [event.seq, event.kind, event.turn, event.ordinal, event.revision]
    return [*place, event.actor, event.person_id, event.epoch, event.at]


def event_hash(
    uid: str, head: list[Any], body: str, payload: bytes | None, state: bytes | None, previous: bytes
) -> bytes:
    """Hash of one event: domain, header (`head`), digests, body, previous hash: a list with one JSON text."""
    digests = [found.hex() if found else None for found in (payload, state)]
    parts = [DOMAIN, uid, *head, *digests, body, previous.hex()]
    return sha(compact(parts))


def entry_of(event: Event) -> e.Entry:
    """The engine's form of a stored event."""
    fact, place = e.load(event.kind, json.loads(event.body)), (event.turn, event.ordinal, event.revision)
    return e.Entry(fact, *place, event.actor, event.person_id, event.at, event.payload, event.seq, event.epoch)


def event_faults(run: Run, event: Event, previous: bytes) -> Iterator[str]:
    """What is wrong with one event, given the hash of the event before it."""
    digest = bytes(event.payload_digest) if event.payload_digest is not None else None
    state = bytes(event.state_digest) if event.state_digest is not None else None
    if event.payload is not None and sha(event.payload) != digest:
        yield f"event {event.seq}: its payload was changed"
    if event_hash(run.uid, stored_header(event), event.body, digest, state, previous) != bytes(event.hash):
        yield f"event {event.seq}: its hash does not match its content"


def decided(run: int, turn: int, ordinal: int, n: int) -> set[tuple[int | None, str]]:
    """(person, vote) of an approval as the record has them. Raises `ValueError` if one of the events was changed."""
    votes = set()
    for event in Event.objects.filter(run=run, turn=turn, ordinal=ordinal, kind="Decided").select_related("run"):
        before = Event.objects.get(run=run, seq=event.seq - 1)
        if list(event_faults(event.run, event, bytes(before.hash))):
            raise ValueError(f"event {event.seq}, a decision, was changed")
        body = json.loads(event.body)
        votes |= {(event.person_id, body["vote"])} if body["n"] == n else set()
    return votes
