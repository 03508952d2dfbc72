"""Query rows written with events: calls from the state, approvals, decisions and questions from their facts."""

import json
from collections.abc import Container, Iterable
from typing import Any

from django.conf import settings

from runs.engine import events as e
from runs.engine.limits import SECOND
from runs.engine.state import CallState
from runs.models import Approval, Call, Decision, Incident, Question

Row = dict[str, Any]  # column -> value
CallRow = tuple[Row, bool]
Statement = tuple[str, list[Any]]
PLACE = ("run_id", "turn", "ordinal")
EMPTY: Row = {
    "arguments": "{}", "why": "", "detail": "", "effect_ref": "", "source": "", "version": "", "evidence": [],
    "met": [], "changed": [], "presumed": False, "after_cancel": False,
}  # fmt: skip
_json = json.JSONEncoder(default=lambda raw: f"\\x{raw.hex()}", ensure_ascii=False).encode


class RowMoved(Exception):
    """A row did not stand as the state said: somebody wrote beside the journal."""


def call_row(run: int, place: tuple[int, int], call: CallState, entries: Iterable[e.Entry]) -> CallRow:
    """Columns of a call that this append sets, and whether the row is new."""
    turn, ordinal = place
    row: Row = {
        "run_id": run, "turn": turn, "ordinal": ordinal, "revision": call.revision, "label": call.label,
        "tool": call.tool, "definition": call.definition, "effect": call.effect, "status": call.status,
        "args_digest": call.args, "objects": call.objects, "key": call.key or None,
        "attempt": call.attempt, "deadline": call.deadline, "started_at": call.started or None,
        "outcome": call.outcome,
    }  # fmt: skip
    about = [x for x in entries if x.ordinal == ordinal and x.turn == turn]
    for entry in about:
        row |= _told(entry)
    is_new = bool(about) and isinstance(about[0].fact, e.CallJudged) and about[0].payload is not None
    return row, is_new


def objects_of(row: Row, entries: Iterable[e.Entry]) -> list[Row]:
    """Rows of the index of objects, where this append judges the call and may have given it other keys."""
    turn, ordinal = place = row["turn"], row["ordinal"]
    if not any((x.turn, x.ordinal) == place and isinstance(x.fact, e.CallJudged) for x in entries):
        return []
    return [{"key": key, "run_id": row["run_id"], "turn": turn, "ordinal": ordinal} for key in row["objects"]]


def index(objects: list[Row], fence: str) -> Statement:
    """The statement of the index of objects; what it holds already stays."""
    sql, params = insert("runs_callobject", objects, fence)
    return f"{sql} ON CONFLICT DO NOTHING", params


def insert(table: str, rows: list[Row], fence: str) -> Statement:
    """INSERT of rows that have the same columns; on PostgreSQL only if the CTE `fence` has a row.

    There the rows are one parameter, typed by the table itself: the statement is as short for many rows as for one,
    so the server prepares it once and the driver has little to convert.
    """
    columns = ", ".join(rows[0])
    if fence:
        source = f"SELECT {columns} FROM {fence}, json_populate_recordset(NULL::{table}, %s::json)"
        return f"INSERT INTO {table} ({columns}) {source}", [_json(rows)]
    marks = ", ".join([f"({', '.join('%s' for _ in rows[0])})"] * len(rows))
    return f"INSERT INTO {table} ({columns}) VALUES {marks}", [_plain(v) for row in rows for v in row.values()]


def write_call(call: CallRow, fence: str) -> Statement:
    """The statement of a call row; on PostgreSQL only if the CTE `fence` has a row."""
    row, is_new = call
    if is_new:
        return insert("runs_call", [EMPTY | row], fence)
    columns = [column for column in row if column not in PLACE]
    moved, where = ", ".join(f"{c} = %s" for c in columns), " AND ".join(f"{c} = %s" for c in PLACE)
    where += f" AND EXISTS (SELECT 1 FROM {fence})" if fence else ""
    return f"UPDATE runs_call SET {moved} WHERE {where}", [_plain(row[c]) for c in (*columns, *PLACE)]


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _told(entry: e.Entry) -> Row:
    """What a fact says about its call beyond the state."""
    match entry.fact:
        case e.CallEdited():
            return {"arguments": entry.payload}
        case e.CallJudged(why=why):
            return {"why": why} | ({"arguments": entry.payload} if entry.payload is not None else {})
        case e.CallEnded() as fact:
            return _found(entry, fact) | {"source": fact.source, "version": fact.version}
        case e.CallSettled() as fact if fact.to != "ready":
            return _found(entry, fact) | {"presumed": fact.presumed, "watch_at": _first_look(entry, fact)}
    return {}


def _first_look(entry: e.Entry, fact: e.CallSettled) -> int | None:
    """When a verdict that is only presumed is looked for again; outside of the record, as time alone moves it."""
    return entry.t + int(settings.AGENTOPS_WATCH[0] * SECOND) if fact.presumed else None


def _found(entry: e.Entry, fact: e.Found) -> Row:
    return {
        "ended_at": entry.t, "ended_seq": entry.seq, "detail": fact.status, "effect_ref": fact.effect_ref,
        "evidence": fact.evidence, "met": fact.met, "changed": fact.changed,
        "after_cancel": getattr(fact, "after_cancel", False),
    }  # fmt: skip


def late_row(entry: e.Entry, fact: e.LateEvidence) -> Row:
    """Columns of a call of an earlier turn that was held to be not executed and turns out to be done."""
    return _found(entry, fact) | {"status": "done", "outcome": fact.outcome, "presumed": False, "watch_at": None}


# Facts whose rows are written one by one through the ORM: never in the hot path.
APPROVALS, QUESTIONS = e.ApprovalRequested | e.ApprovalClosed | e.Decided, e.QuestionAsked | e.QuestionAnswered
INCIDENTS = e.IncidentOpened | e.IncidentClosed


def is_rare(entry: e.Entry, touched: Container[tuple[int, int]]) -> bool:
    """True if the fact writes rows through the ORM: no start without approval, no evidence on a call in the state."""
    match entry.fact:
        case e.LateEvidence():
            return (entry.turn, entry.ordinal) not in touched
        case e.CallStarted(via=via):
            return via == "approval"
    return isinstance(entry.fact, APPROVALS | QUESTIONS | INCIDENTS | e.CancelAsked | e.RunEnded)


def write_rare(run: int, entry: e.Entry) -> None:
    """Write the rows of a fact that `is_rare`. Raises `RowMoved`."""
    place = {"run_id": run, "turn": entry.turn, "ordinal": entry.ordinal}
    approvals, t = Approval.objects.filter(**place), entry.t
    if isinstance(entry.fact, INCIDENTS):
        return _write_incident(place, entry, entry.fact)
    match entry.fact:
        case e.ApprovalRequested(n, digest, rule, exclude, expires):
            asked = {"digest": digest, "rule": rule, "exclude": exclude, "expires_at": expires or None}
            Approval.objects.create(**place, revision=entry.revision, n=n, created_at=t, **asked)
        case e.ApprovalClosed(n, how, why):
            _move(approvals.filter(n=n), "pending", "approved", status=how, closed_at=t, closed_why=why)
        case e.Decided(n, digest, vote, why):
            status = {"approve": "approved", "reject": "rejected"}[vote]
            _move(approvals.filter(n=n), "pending", status=status, closed_at=t)
            cast = {"person_id": entry.person, "vote": vote, "why": why, "digest": digest}
            Decision.objects.create(approval=approvals.get(n=n), at=t, **cast)
        case e.CallStarted():
            _move(approvals, "approved", status="consumed")
        case e.QuestionAsked(text, schema):
            Question.objects.create(**place, text=text, schema=schema, created_at=t)
        case e.QuestionAnswered(answer):
            answered = {"status": "answered", "answer": answer, "person": entry.person}
            _move(Question.objects.filter(**place), "open", closed_at=t, **answered)
        case e.CancelAsked() | e.RunEnded():
            Question.objects.filter(run=run, status="open").update(status="withdrawn", closed_at=t)
        case e.LateEvidence() as fact:
            row = late_row(entry, fact)
            Call.objects.filter(**place, status="not_executed").update(**row)
    return None


def _write_incident(place: dict[str, int], entry: e.Entry, fact: e.IncidentOpened | e.IncidentClosed) -> None:
    if isinstance(fact, e.IncidentOpened):
        Incident.objects.create(**place, seq=entry.seq, what=fact.what, opened_at=entry.t)
        return
    told = {"closed_at": entry.t, "closed_seq": entry.seq, "person": entry.person, "finding": fact.why}
    if not Incident.objects.filter(run=place["run_id"], seq=fact.incident, closed_at=None).update(**told):
        raise RowMoved(f"incident {fact.incident} is not open any more")


def _move(rows: Any, *old: str, **changes: Any) -> None:
    if rows.filter(status__in=old).update(**changes) != 1:
        raise RowMoved(f"no row stood at {' or '.join(old)}")
