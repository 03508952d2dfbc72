"""Verification is a gate, not a button: a run whose stored bytes do not match its record starts and takes nothing."""

import json
from collections.abc import Mapping
from typing import Any

from runs.engine import events as e
from runs.engine.evolve import fold
from runs.engine.next_step import Stop, stop_entry
from runs.engine.state import RunState
from runs.journal.append import Draft, Picture, append
from runs.journal.chain import entry_of, event_faults, sha
from runs.journal.lease import now
from runs.models import Event, Run


class Tampered(Exception):
    """Stored data of a run is not what its record says; the message says what."""


def check_head(run: Run) -> Event:
    """Compare a row just read with its last event; returns the first event, whose payload holds inputs and facts.

    One query, whatever the history. Raises `Tampered`.
    """
    found = {event.seq: event for event in Event.objects.filter(run=run, seq__in={1, run.seq})}
    first, last = found.get(1), found.get(run.seq)
    if first is None or last is None or bytes(last.hash) != bytes(run.head):
        raise Tampered("the run's head is not its last event")
    if last.state_digest is None or bytes(last.state_digest) != sha(run.state):
        raise Tampered("the run's state is not the one that was recorded")
    if first.payload is None or sha(first.payload) != bytes(first.payload_digest or b""):
        raise Tampered("the run's inputs and facts were changed")
    if json.loads(first.payload) != run.opening:
        raise Tampered("the run's goal, inputs or facts are not those that it was started with")
    started = json.loads(first.body)
    if (started["agent"], started["starter"]) != (run.agent_version.identity, run.starter_id):
        raise Tampered("the run's agent or starter was changed")
    return first


def picture_of(locked: Run) -> Picture:
    """The picture of a locked row; where the row fails its check, that is recorded first and the record believed."""
    try:
        check_head(locked)
    except Tampered as error:
        return stop_run(locked, "integrity", str(error))
    return Picture.of(locked)


def opening(run: int) -> dict[str, Any]:
    """Goal, inputs and facts as the run was started with: from the record, not from the columns for display."""
    return dict(json.loads(Event.objects.get(run=run, seq=1).payload or "{}"))


def plain(given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Inputs or facts of an opening as tools and checks get them, name -> value: without trust and source."""
    return {name: one["value"] for name, one in given.items()}


def stop_run(run: Run, reason: str, detail: str, *, mine: bool = False) -> Picture:
    """Stop a run. Where its row failed the check, the record is the truth: the state is folded from the events.

    A row that fails once more, or after the end, leaves its trace too: nothing is put right in silence.
    """
    tampered = reason == "integrity"
    draft = Draft(Picture.of(run, mine, _recorded(run) if tampered else None), now())
    if again := tampered and bool(draft.state.end or draft.state.tampered):
        draft.add(e.IncidentOpened(detail))
    elif not draft.state.end and (tampered or not draft.state.stop):
        draft.put(stop_entry(draft.state, Stop(reason, detail)))
    return append(draft, release=mine, rest=again)  # else it would fail at the same place for ever


def _recorded(run: Run) -> RunState:
    """The fold of the events; of those behind the head, as far as they follow it.

    History is never deleted, so the row is put behind whatever stands there: otherwise nothing could be appended.
    """
    state, before, intact, after = RunState(), b"", True, None
    for event in Event.objects.filter(run=run).order_by("seq"):
        intact = intact and not list(event_faults(run, event, before))
        if intact or event.seq <= run.seq:
            state = _folded(event, state, intact)
        before, after = bytes(event.hash), event if event.seq > run.seq else None
    if after is not None:
        Run.objects.filter(pk=run.pk, epoch=run.epoch, seq=run.seq).update(seq=after.seq, head=after.hash)
        run.seq, run.head = after.seq, after.hash
    return state


def _folded(event: Event, state: RunState, intact: bool) -> RunState:
    """The state after an event; the one before it where a hand changed the record so that it no longer folds.

    A stop must be possible even then: `verify` names the event, and such a run never succeeds. What cannot be read in a
    record that is `intact` so far was written by newer code, and stays an error.
    """
    try:
        return fold([entry_of(event)], state)
    except (ValueError, LookupError, TypeError, AttributeError):
        if intact:
            raise
        return state
