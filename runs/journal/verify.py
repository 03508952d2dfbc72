"""verify(run): does everything that stands about a run say what its record says? Chain, payloads, state and rows."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from runs.engine import events as e
from runs.engine.evolve import evolve
from runs.engine.state import RunState, dumps
from runs.journal import rows
from runs.journal.chain import entry_of, event_faults, sha
from runs.models import Approval, Call, Decision, Event, Incident, Run

Place = tuple[int, ...]
APART = ("arguments", "watch_at")  # compared by their digest; moved by time alone


@contextmanager
def snapshot() -> Iterator[None]:
    """What is read inside is of one moment, and no writer waits for it: on SQLite a deferred transaction."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield


def verify(run: Run) -> list[str]:
    """What is wrong with a run's record, in words; empty when everything matches.

    While others write, read the row and verify it in one `snapshot`.
    """
    return list(Reading(run).faults())


class Reading:
    """One pass over the events of a run, noting what its rows should say at the end."""

    def __init__(self, run: Run) -> None:
        """Nothing read yet."""
        self.run, self.state, self.seq, self.head = run, RunState(), 0, b""
        self.calls: dict[Place, dict[str, Any]] = {}
        self.approvals: dict[Place, list[Any]] = {}
        self.votes: set[Any] = set()
        self.incidents: dict[int, tuple[Any, ...]] = {}
        self.began: tuple[Any, ...] = ()

    def faults(self) -> Iterator[str]:
        """Everything that is wrong; ends early where the rest cannot be read."""
        gone: set[int] = set()
        for event in Event.objects.filter(run=self.run).order_by("seq").iterator():
            self.seq += 1
            if event.seq != self.seq:
                yield f"event {self.seq} is missing"
                return
            try:
                entry = entry_of(event)
                self.state, touched = evolve(self.state, entry)
                self._note(entry, touched)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                yield f"event {self.seq}: cannot be read or folded: {error}"
                return
            yield from event_faults(self.run, event, self.head)
            gone |= {self.seq} if event.payload is None and event.payload_digest is not None else set()
            gone -= {entry.fact.erased} if isinstance(entry.fact, e.PayloadErased) else set()
            if event.state_digest is not None and bytes(event.state_digest) != sha(dumps(self.state)):
                yield f"event {self.seq}: the state at that point differs from its digest"
            self.head = bytes(event.hash)
        yield from (f"event {seq}: its payload is gone" for seq in sorted(gone))
        yield from self._run_faults()
        yield from self._call_faults()
        yield from self._people_faults()

    def _note(self, entry: e.Entry, touched: Iterable[int]) -> None:
        for ordinal in touched:
            place = self.state.turn, ordinal
            row, _ = rows.call_row(self.run.pk, place, self.state.calls[ordinal], [entry])
            self.calls.setdefault(place, dict(rows.EMPTY)).update(row)
        place = entry.turn, entry.ordinal
        match entry.fact:
            case e.RunStarted() as fact:
                self.began = fact.agent, fact.starter, json.loads(entry.payload or "null")
            case e.LateEvidence() as fact if not touched and self.calls[place]["status"] == "not_executed":
                self.calls[place].update(rows.late_row(entry, fact))
            case e.ApprovalRequested() as fact:
                self.approvals[*place, fact.n] = ["pending", fact.digest, fact.rule, fact.exclude]
            case e.ApprovalClosed() as fact:
                self.approvals[*place, fact.n][0] = fact.how
            case e.Decided() as fact:
                self.approvals[*place, fact.n][0] = {"approve": "approved", "reject": "rejected"}[fact.vote]
                self.votes.add((*place, fact.n, entry.person, fact.vote, fact.why, fact.digest))
            case e.IncidentOpened(what):
                self.incidents[entry.seq] = (*place, what, None, None, "")
            case e.IncidentClosed(incident, why):
                opened = self.incidents[incident]
                self.incidents[incident] = (*opened[:3], entry.seq, entry.person, why)
            case e.CallStarted(via="approval"):
                self.approvals[max(key for key in self.approvals if key[:2] == place)][0] = "consumed"

    def _run_faults(self) -> Iterator[str]:
        run = self.run
        if (self.seq, self.head) != (run.seq, bytes(run.head)):
            yield f"the run's head names event {run.seq}, the record ends at {self.seq}"
        if dumps(self.state) != run.state:
            yield "the run's state is not the fold of its events"
        if self.began[:2] != (run.agent_version.identity, run.starter_id):
            yield "the run's agent or starter is not the one that it was started with"
        if self.began[2:] not in ((run.opening,), (None,)):
            yield "the run's goal, inputs or facts are not those that it was started with"

    def _call_faults(self) -> Iterator[str]:
        """Rows are projections: what would run, and what acceptance is judged on, must be what the record says."""
        for call in Call.objects.filter(run=self.run):
            row = self.calls.pop((call.turn, call.ordinal), None)
            if row is None:
                yield f"call {call.turn}.{call.ordinal}: nobody proposed it"
                continue
            stored = {f.column: getattr(call, f.attname) for f in Call._meta.concrete_fields}
            said = {c: v for c, v in row.items() if c not in APART}
            wrong = [column for column, value in said.items() if value != stored[column]]
            wrong += ["arguments"] if row["args_digest"] and sha(call.arguments).hex() != row["args_digest"] else []
            yield from (f"call {call.turn}.{call.ordinal}: its {column} is not that of the record" for column in wrong)
        yield from (f"call {turn}.{ordinal}: its row is missing" for turn, ordinal in self.calls)

    def _people_faults(self) -> Iterator[str]:
        """What people were asked and decided stands in rows for pages and in events for proof."""
        fields = ("turn", "ordinal", "n", "status", "digest", "rule", "exclude")
        stored = {tuple(r[:3]): list(r[3:]) for r in Approval.objects.filter(run=self.run).values_list(*fields)}
        for place in sorted(stored.keys() | self.approvals.keys()):
            if stored.get(place) != self.approvals.get(place):
                yield f"approval {place[2]} of call {place[0]}.{place[1]} is not that of the record"
        fields = ("approval__turn", "approval__ordinal", "approval__n", "person_id", "vote", "why", "digest")
        if self.votes != set(Decision.objects.filter(approval__run=self.run).values_list(*fields)):
            yield "the stored decisions are not those of the record"
        fields = ("seq", "turn", "ordinal", "what", "closed_seq", "person_id", "finding")
        kept = {seq: rest for seq, *rest in Incident.objects.filter(run=self.run).values_list(*fields)}
        if kept != {seq: list(told) for seq, told in self.incidents.items()}:
            yield "the stored incidents are not those of the record"
