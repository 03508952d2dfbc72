"""append(draft): the one way in which a run changes. One transaction, fenced by epoch and seq.

On PostgreSQL the run row, the events and the call rows are one statement; on SQLite the same three inside BEGIN
IMMEDIATE (with the ORM row by row the speed goals are out of reach: spine.md 4). A stale picture writes nothing.
"""

from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from runs import notify
from runs.engine import events as e
from runs.engine.evolve import evolve, is_progress
from runs.engine.frozen import Frozen
from runs.engine.limits import SECOND
from runs.engine.next_step import Wait, next_step, status_of
from runs.engine.state import CallState, RunState, dumps, loads, replace
from runs.journal import budgets, rows
from runs.journal.chain import body_text, event_hash, header, sha
from runs.journal.faultpoint import faultpoint
from runs.models import Event, Run

GUARD = "agentops: "  # how the triggers of the database begin what they say


class Stale(Exception):
    """Others appended, or the policy moved: reload and build the batch again from the facts in hand."""


class LeaseLost(Exception):
    """Another worker holds the run: stop at once and send nothing more."""


class Picture(Frozen):
    """What somebody believes about a run. It changes only after an append succeeded. Times are microseconds."""

    run: int
    uid: str
    epoch: int
    seq: int
    head: bytes
    state: RunState
    lease_until: int | None
    crashes: int
    mine: bool = False

    @classmethod
    def of(cls, run: Run, mine: bool = False, state: RunState | None = None) -> "Picture":
        """The picture of a row; `mine` if the reader holds the lease, `state` if the row's is not to be believed."""
        believed = loads(run.state) if state is None else state
        return cls(run.pk, run.uid, run.epoch, run.seq, bytes(run.head), believed, run.lease_until, run.crashes, mine)


class Draft:
    """Facts to be appended, with the state that they would lead to."""

    def __init__(self, picture: Picture, now: int) -> None:
        """Begin a draft on a picture at `now` (microseconds, the database's clock)."""
        self.picture = picture
        self.state = picture.state
        self.now = max(now, picture.state.t)
        self.policy: int | None = None
        self.entries: list[e.Entry] = []
        self.touched: dict[tuple[int, int], CallState] = {}
        self.money: list[budgets.Reserve | budgets.Settle] = []

    def add(self, fact: e.Fact, *, call: int = 0, turn: int | None = None, **header: Any) -> "Draft":
        """Add a fact about the run, or about call `call` of the open turn; `header` as in `Entry`."""
        revision = header.pop("revision", self.state.calls[call].revision if call in self.state.calls else 0)
        return self.put(e.Entry(fact, self.state.turn if turn is None else turn, call, revision, **header))

    @property
    def crashes(self) -> int:
        """Lapsed leases since the last progress."""
        return 0 if any(map(is_progress, self.entries)) else self.picture.crashes

    def put(self, *entries: e.Entry) -> "Draft":
        """Add entries that the engine made."""
        for entry in entries:
            seq = self.picture.seq + len(self.entries) + 1
            placed = replace(entry, seq=seq, epoch=self.picture.epoch, t=entry.t or self.now)
            self.state, touched = evolve(self.state, placed)
            self.entries.append(placed)
            # Kept as it stands now: the next fact of the same append may empty the turn.
            self.touched |= {(self.state.turn, o): self.state.calls[o] for o in touched}
        return self


def append(draft: Draft, *, release: bool = False, rest: bool = False) -> Picture:
    """Write a draft; returns the new picture. What was judged is fenced with the number of the policy it was judged by.

    Raises `Stale`, `LeaseLost` or `OverBudget`, having written nothing. An empty draft with `release` parks the run;
    after `rest` it is not due again by itself, whatever its state asks for.
    """
    old, state = draft.picture, draft.state
    lease = None if release or state.end else old.lease_until
    if old.mine and lease is not None:
        lease = renewed(lease, draft.now)
    status, due = project(state, lease, draft.now, draft.crashes)
    due = None if rest else due
    text = dumps(state)
    events, head = _event_rows(old, draft.entries, sha(text))
    seq = old.seq + len(draft.entries)
    moved: dict[str, Any] = {"seq": seq, "head": head, "lease_until": lease, "crashes": draft.crashes}
    run = {"status": status, "state": text, "due_at": due, **moved}
    calls = [rows.call_row(old.run, place, call, draft.entries) for place, call in draft.touched.items()]
    objects = [row for call, _ in calls for row in rows.objects_of(call, draft.entries)]
    rare = [x for x in draft.entries if rows.is_rare(x, draft.touched)]
    faultpoint("before_append")
    several = rare or draft.money or connection.vendor == "sqlite" or connection.in_atomic_block
    with transaction.atomic() if several else nullcontext():
        if not _written(old, run, events, calls, objects, draft.policy):
            raise _why_refused(old, draft.policy)
        faultpoint("in_append")
        for entry in rare:
            rows.write_rare(old.run, entry)
        if draft.money:
            budgets.write(old.run, state, draft.money)
        news = bool(rare) or status != "running"
        transaction.on_commit(lambda: notify.appended(old.run, seq, wake=due == 0, inbox=news))
    faultpoint("after_append")
    if state.end:
        faultpoint("after_end")
    return replace(old, state=state, **moved)


def project(state: RunState, lease: int | None, now: int, crashes: int = 0) -> tuple[str, int | None]:
    """Status and `due_at` of a state under a lease (None: nobody holds it; in the past: its holder is gone)."""
    if lease is not None and lease > now:
        return status_of(state, Wait(None, "leased"), leased=True), lease
    step = next_step(state, now, crashes=crashes)
    due = step.until if isinstance(step, Wait) and lease is None else 0
    return status_of(state, step, leased=False), due


def renewed(until: int, now: int) -> int:
    """A lease is extended when less than half is left: an indexed column left alone keeps updates in place."""
    length = int(settings.AGENTOPS_LEASE * SECOND)
    return until if until - now >= length // 2 else now + length


def _event_rows(old: Picture, entries: list[e.Entry], state: bytes) -> tuple[list[rows.Row], bytes]:
    columns = [str(f.column) for f in Event._meta.concrete_fields]
    out, head = [], old.head
    for entry in entries:
        body = body_text(entry.fact)
        payload = sha(entry.payload) if entry.payload is not None else None
        last = state if entry is entries[-1] else None
        told = header(entry)
        head = event_hash(old.uid, told, body, payload, last, head)
        out.append(dict(zip(columns, [old.run, *told, body, entry.payload, payload, last, head], strict=True)))
    return out, head


def _why_refused(old: Picture, policy: int | None) -> Exception:
    row = Run.objects.filter(pk=old.run).values("epoch", "seq", "lease_until").first()
    if row is None or row["epoch"] != old.epoch or (old.mine and row["lease_until"] is None):
        return LeaseLost(f"run {old.run}: epoch {old.epoch} is over")
    moved = f"at {row['seq']}, not {old.seq}" if row["seq"] != old.seq else f"policy is not {policy}"
    return Stale(f"run {old.run}: {moved}")


def _written(*what: Any) -> bool:
    """As `_write`. Raises `RowMoved` where the fence let us pass, and an event's place is taken or a guard refuses."""
    try:
        return _write(*what)
    except IntegrityError as error:
        if Event._meta.db_table in str(error):
            raise rows.RowMoved("an event stands behind the run's head") from error
        if GUARD in str(error):
            raise rows.RowMoved(f"the run's row is older than its record: {str(error).splitlines()[0]}") from error
        raise


def _write(
    old: Picture, run: rows.Row, events: list[rows.Row], calls: list[rows.CallRow], objects: list[rows.Row],
    policy: int | None,
) -> bool:  # fmt: skip
    """Write all the tables; False if the fence refused, and then nothing was written."""
    where, fence = "id = %s AND epoch = %s AND seq = %s", [old.run, old.epoch, old.seq]
    if old.mine:
        where += " AND lease_until IS NOT NULL"
    if policy is not None:
        where, fence = f"{where} AND EXISTS (SELECT 1 FROM runs_policy WHERE current AND number = %s)", [*fence, policy]
    update = f"UPDATE runs_run SET {', '.join(f'{c} = %s' for c in run)} WHERE {where}", [*run.values(), *fence]
    # On PostgreSQL all of it is one statement: what follows the fenced UPDATE draws its rows from what that returned.
    source = "w0" if connection.vendor == "postgresql" else ""
    others = [rows.insert("runs_event", events, source)] if events else []
    others += [rows.write_call(call, source) for call in calls]
    others += [rows.index(objects, source)] if objects else []
    with connection.cursor() as cursor:
        if source:
            parts = [(f"{update[0]} RETURNING id", update[1]), *others]
            named = ", ".join(f"w{i} AS ({sql})" for i, (sql, _) in enumerate(parts))
            cursor.execute(f"WITH {named} SELECT count(*) FROM w0", [p for _, params in parts for p in params])
            return bool(cursor.fetchone()[0])
        cursor.execute(*update)
        written = cursor.rowcount == 1
        for sql, params in others if written else ():
            cursor.execute(sql, params)
        return written
