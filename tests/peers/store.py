"""The record of AgentOps as a store for `agent-memory-integrity`: its edits are made by SQL, with the guards off.

The records are the events of a run: its start, and one note of a person each. `seed` writes through `runs.actions`.
What is asked afterwards is not how the store looks, but what AgentOps does: `Worker` lets the agent go on and claim
its finish, `Audit` runs `manage.py verify_audit`. Neither adapter knows which edit was made.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from runs.actions import runs
from runs.audit.witness import Witness
from runs.engine.evolve import fold
from runs.engine.state import dumps
from runs.journal.chain import entry_of, event_hash, sha, stored_header
from runs.models import Event, Run
from tests.audit.tampering import sql
from tests.stories.playing import Play, finish, person

COLUMNS = [field.column for field in Event._meta.concrete_fields if field.column != "run_id"]
CONTENT = ("body", "payload", "payload_digest")
MARKED = "agmi_meta_tampered"


class Store(MemoryAdapter):
    """What is common: rows of `runs_event`, one run as the store and another as the second context."""

    supports_replay = supports_metadata = supports_snapshot = True

    def setup(self) -> None:
        """Two fresh runs, whose agent would finish at once. The database is put back by `teardown`."""
        self.whole = transaction.savepoint()
        self.plays = Play(*[finish()] * 20, tools=()), Play(tools=())
        self.person = person("other")

    def teardown(self) -> None:
        """Put the database back."""
        transaction.savepoint_rollback(self.whole)

    @property
    def run(self) -> int:
        """The run that is the store."""
        return self.plays[0].pk

    # --- our own way of writing ---
    def seed(self, n: int) -> None:
        """`n` notes in the first run."""
        self._write(self.run, n)

    def seed_other(self, n: int) -> None:
        """`n` notes in the second run."""
        self._write(self.plays[1].pk, n)

    def append_genuine(self) -> None:
        """One more note."""
        self._write(self.run, 1)

    def _write(self, run: int, n: int) -> None:
        for _ in range(n):
            count = Event.objects.filter(run=run).count()
            runs.add_note(run, self.person, f"Note {count} of run {run}: the limit is {40 + count}.")

    # --- the attacker's ---
    def read_all_raw(self) -> list[Record]:
        """All events of the first run."""
        return self._read(self.run)

    def read_other_raw(self) -> list[Record]:
        """All events of the second run."""
        return self._read(self.plays[1].pk)

    def _read(self, run: int) -> list[Record]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM runs_event WHERE run_id = %s ORDER BY seq", [run])
            rows = [[bytes(v) if isinstance(v, memoryview) else v for v in row] for row in cursor.fetchall()]
        return [Record(n, {**dict(zip(COLUMNS, row, strict=True)), "run": run}) for n, row in enumerate(rows)]

    def _seq(self, position: int) -> int:
        return int(self.read_all_raw()[position].fields["seq"])

    def write_raw(self, record: Record) -> None:
        """Every column but the number of the event, into the row at this position or a new one behind the last."""
        fields, rows = record.fields, self.read_all_raw()
        names = [name for name in COLUMNS if name != "seq"]
        values = [fields[name] for name in names]
        if record.seq < len(rows):
            sets = ", ".join(f"{name} = %s" for name in names)
            place = self.run, rows[record.seq].fields["seq"]
            sql(f"UPDATE runs_event SET {sets} WHERE run_id = %s AND seq = %s", *values, *place)
        else:
            marks = ", ".join(["%s"] * (len(names) + 2))
            place = self.run, rows[-1].fields["seq"] + 1
            sql(f"INSERT INTO runs_event (run_id, seq, {', '.join(names)}) VALUES ({marks})", *place, *values)

    def delete_raw(self, seq: int) -> None:
        """Delete the row at this position."""
        sql("DELETE FROM runs_event WHERE run_id = %s AND seq = %s", self.run, self._seq(seq))

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """The donor's columns, hash and all, in the victim's place."""
        self.write_raw(Record(victim_seq, dict(donor.fields)))

    def read_meta(self, seq: int) -> dict[str, Any]:
        """Who stated it and when."""
        fields = self.read_all_raw()[seq].fields
        return {"person_id": fields["person_id"], "at": fields["at"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        """Another person; the marker that the suite adds means: change it."""
        who = person("starter").pk if meta.get(MARKED) else meta["person_id"]
        sql("UPDATE runs_event SET person_id = %s WHERE run_id = %s AND seq = %s", who, self.run, self._seq(seq))

    def mutate_payload(self, record: Record) -> Record:
        """Another text in the note."""
        record.fields["body"] = json.dumps({"text": "The limit is 9000."}, separators=(",", ":"))
        return record

    def snapshot_store(self) -> str:
        """The whole database as it is now. Files outside it are not part of it."""
        return transaction.savepoint()

    def restore_store(self, token: Any) -> None:
        """The whole database as it was."""
        transaction.savepoint_rollback(token)

    def reload(self) -> None:
        """Nothing is kept between requests: every act and every step reads the rows."""

    # --- how the suite sees that an edit landed ---
    def identity_of(self, record: Record) -> str:
        """The run and the number of the event."""
        return f"{record.fields['run']}:{record.fields['seq']}"

    def payload_of(self, record: Record) -> str:
        """What the event says."""
        return repr([record.fields[name] for name in CONTENT])

    def owner_of(self, record: Record) -> str:
        """Its run."""
        return str(record.fields["run"])


class Worker(Store):
    """Refused means: a worker that goes on with the run does not bring it to `succeeded`."""

    name = "agentops: a worker goes on"
    detection_point = "read"

    def verify(self) -> bool:
        """Let the agent claim its finish, look, and undo it."""
        token = transaction.savepoint()
        try:
            self.plays[0].answers = iter([finish()] * 20)
            run = self.plays[0].go().run
            stop = run.picture.stop
            self.verify_detail = f"{run.status}: {stop.reason}" if stop else None
            assert run.status == "succeeded" or (stop and stop.reason == "integrity"), run.status
            return run.status == "succeeded"
        finally:
            transaction.savepoint_rollback(token)


class Audit(Store):
    """`manage.py verify_audit`, with or without the heads outside the database."""

    name = "agentops: verify_audit"
    detection_point = "audit"

    def __init__(self, heads: Path | None = None) -> None:
        """`heads` is the folder of the heads outside, which settings name; None does without."""
        self.heads = heads
        self.witness = Witness()

    def verify(self) -> bool:
        """Whether the command finds nothing; its first bad place is the detail."""
        try:
            call_command("verify_audit", without_heads=self.heads is None, stdout=io.StringIO(), stderr=io.StringIO())
        except CommandError as error:
            self.verify_detail = str(error)
            return False
        return True

    def _write(self, run: int, n: int) -> None:
        super()._write(run, n)
        if self.heads:
            assert self.witness.look(at_once=True) == ""  # once a minute, in a real installation


class Careful(Audit):
    """An attacker who knows the code: after each edit all that the database says about the run fits together again.

    The chain has no key in it, so whoever may write all tables may compute it anew.
    """

    name = "agentops: verify_audit, after a careful attacker"
    careful = True

    def reload(self) -> None:
        """Number, fold and chain the events again, and put the run's row to what they say."""
        run = Run.objects.get(pk=self.run)
        events = list(Event.objects.filter(run=run).order_by("seq"))
        sql("UPDATE runs_event SET seq = seq + 1000 WHERE run_id = %s", run.pk)
        entries, head = [], b""
        for number, event in enumerate(events, 1):
            old, event.seq = event.seq, number
            entries.append(entry_of(event))
            payload = sha(event.payload) if event.payload is not None else None
            state = sha(dumps(fold(entries))) if event.state_digest is not None else None
            head = event_hash(run.uid, stored_header(event), event.body, payload, state, head)
            sql(
                "UPDATE runs_event SET seq = %s, payload_digest = %s, state_digest = %s, hash = %s"
                " WHERE run_id = %s AND seq = %s",
                number, payload, state, head, run.pk, old + 1000,
            )  # fmt: skip
        last = dumps(fold(entries))
        sql("UPDATE runs_run SET seq = %s, head = %s, state = %s WHERE id = %s", len(events), head, last, run.pk)
