"""The record of one run as lines of a file, piece by piece, so that its size does not matter.

The lines of JSON hold what the chain hashes: whoever has the file can check it without us (docs/trace.md).
"""

import json
from collections.abc import Iterator
from typing import Any

from runs.journal.chain import DOMAIN
from runs.models import Event, Run
from runs.queries.exporting import as_csv, harmless, iso
from runs.queries.facts import note_of
from runs.queries.timeline import Row

COLUMNS = ("event", "at", "kind", "turn", "call", "who", "what", "in_their_words")
PIECE = 500


def json_lines(run: Run) -> Iterator[str]:
    """The run, then each event as an object; hashes and digests in hex, times in microseconds since 1970."""
    version = run.agent_version
    opening = {
        "run": run.pk, "uid": run.uid, "domain": DOMAIN, "agent": version.agent.slug, "agent_version": version.number,
        "status": run.status, "starter": run.starter_id, "events": run.seq, "head": bytes(run.head).hex(),
    }  # fmt: skip
    yield _line(opening)
    for piece in _pieces(run):
        yield "".join(_line(_record(event)) for event in piece)


def csv_lines(run: Run) -> Iterator[str]:
    """What the timeline says, a sentence a row. It begins with the byte order mark, for spreadsheets."""
    yield "\ufeff" + as_csv([COLUMNS])
    for piece in _pieces(run):
        yield as_csv([[harmless(cell) for cell in _cells(event)] for event in piece])


def _cells(event: Event) -> tuple[Any, ...]:
    who = event.person.get_username() if event.person else event.actor
    row = Row(event.seq, event.kind, event.turn, event.ordinal, event.at, who, json.loads(event.body), False)
    note = note_of(row)
    call = f"{event.turn}.{event.ordinal}" if event.ordinal else ""
    said = (note.text, note.quote) if note else ("", "")
    return (event.seq, iso(event.at), event.kind, event.turn or "", call, who, *said)


def _pieces(run: Run) -> Iterator[list[Event]]:
    """Up to the head that the export names; what is appended meanwhile is not in it."""
    events, after = Event.objects.filter(run=run, seq__lte=run.seq).select_related("person").order_by("seq"), 0
    while piece := list(events.filter(seq__gt=after)[:PIECE]):
        yield piece
        after = piece[-1].seq


def _record(event: Event) -> dict[str, Any]:
    digests = {
        name: bytes(value).hex() if value is not None else None
        for name, value in (("payload_digest", event.payload_digest), ("state_digest", event.state_digest))
    }
    return {
        "seq": event.seq, "kind": event.kind, "turn": event.turn, "ordinal": event.ordinal, "revision": event.revision,
        "actor": event.actor, "person": event.person_id, "epoch": event.epoch, "at": event.at, "body": event.body,
        "payload": event.payload, **digests, "hash": bytes(event.hash).hex(),
    }  # fmt: skip


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
