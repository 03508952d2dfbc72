"""Query rows written with events: calls from the state, approvals, decisions and questions from their facts."""

import json
from collections.abc import Callable, Container, Iterable
from typing import Any

from runs.engine import events as e
from runs.engine.state import CallState
from runs.models import Approval, Call, Decision, Question

TYPES = {
    "run_id": "bigint", "turn": "int", "ordinal": "int", "revision": "int", "attempt": "int", "deadline": "bigint",
    "started_at": "bigint", "ended_at": "bigint", "ended_seq": "bigint", "presumed": "boolean",
    "after_cancel": "boolean", "objects": "jsonb", "evidence": "jsonb", "met": "jsonb", "changed": "jsonb",
}  # fmt: skip
EMPTY = {
    "arguments": "{}", "why": "", "detail": "", "effect_ref": "", "source": "", "version": "", "evidence": "[]",
    "met": "[]", "changed": "[]", "presumed": False, "after_cancel": False,
}  # fmt: skip
CallRow = tuple[dict[str, Any], bool]


class RowMoved(Exception):
    """A row did not stand as the state said: somebody wrote beside the journal."""


def call_row(run: int, place: tuple[int, int], call: CallState, entries: Iterable[e.Entry]) -> CallRow:
    """Columns of a call that this append sets, and whether the row is new."""
    turn, ordinal = place
    row: dict[str, Any] = {
        "run_id": run, "turn": turn, "ordinal": ordinal, "revision": call.revision, "label": call.label,
        "tool": call.tool, "definition": call.definition, "effect": call.effect, "status": call.status,
        "args_digest": call.args, "objects": json.dumps(call.objects), "key": call.key or None,
        "attempt": call.attempt, "deadline": call.deadline, "started_at": call.started or None,
        "outcome": call.outcome,
    }  # fmt: skip
    about = [x for x in entries if x.ordinal == ordinal and x.turn == turn]
    for entry in about:
        if read := READ.get(type(entry.fact)):
            row |= read(entry, entry.fact)
    is_new = bool(about) and isinstance(about[0].fact, e.CallJudged) and about[0].payload is not None
    return row, is_new


def write_call(call: CallRow, fence: str) -> tuple[str, list[Any]]:
    """The statement of a call row; on PostgreSQL only if the CTE `fence` has a row."""
    row, is_new = call
    if is_new:
        row = EMPTY | row
        marks = ", ".join(f"%s::{TYPES.get(column, 'text')}" if fence else "%s" for column in row)
        source = f"SELECT {marks} FROM {fence}" if fence else f"VALUES ({marks})"
        return f"INSERT INTO runs_call ({', '.join(row)}) {source}", list(row.values())
    place = [row.pop(column) for column in ("run_id", "turn", "ordinal")]
    where = "run_id = %s AND turn = %s AND ordinal = %s" + (f" AND EXISTS (SELECT 1 FROM {fence})" if fence else "")
    return f"UPDATE runs_call SET {', '.join(f'{c} = %s' for c in row)} WHERE {where}", [*row.values(), *place]


def _judged(entry: e.Entry, fact: e.CallJudged) -> dict[str, Any]:
    return {"why": fact.why} | ({"arguments": entry.payload} if entry.payload is not None else {})


def _edited(entry: e.Entry, fact: e.CallEdited) -> dict[str, Any]:
    return {"arguments": entry.payload}


def _outcome(entry: e.Entry, fact: Any) -> dict[str, Any]:
    return {
        "ended_at": entry.t, "ended_seq": entry.seq, "detail": fact.status, "effect_ref": fact.effect_ref,
        "evidence": json.dumps(fact.evidence), "met": json.dumps(fact.met), "changed": json.dumps(fact.changed),
        "after_cancel": getattr(fact, "after_cancel", False),
    }  # fmt: skip


def _ended(entry: e.Entry, fact: e.CallEnded) -> dict[str, Any]:
    return _outcome(entry, fact) | {"source": fact.source, "version": fact.version}


def _settled(entry: e.Entry, fact: e.CallSettled) -> dict[str, Any]:
    return {} if fact.to == "ready" else _outcome(entry, fact) | {"presumed": fact.presumed}


READ: dict[type[e.Fact], Callable[[e.Entry, Any], dict[str, Any]]] = {
    e.CallEdited: _edited,
    e.CallJudged: _judged,
    e.CallEnded: _ended,
    e.CallSettled: _settled,
}


def _approval(run: int, entry: e.Entry) -> Any:
    return Approval.objects.filter(run=run, turn=entry.turn, ordinal=entry.ordinal, n=entry.fact.n)  # type: ignore[attr-defined]


def _move(rows: Any, old: tuple[str, ...], **changes: Any) -> None:
    if rows.filter(status__in=old).update(**changes) != 1:
        raise RowMoved(f"no row stood at {' or '.join(old)}")


def approval_requested(run: int, entry: e.Entry, fact: e.ApprovalRequested) -> None:
    Approval.objects.create(
        run_id=run, turn=entry.turn, ordinal=entry.ordinal, revision=entry.revision, n=fact.n, digest=fact.digest,
        rule=fact.rule, exclude=fact.exclude, expires_at=fact.expires or None, created_at=entry.t,
    )  # fmt: skip


def approval_closed(run: int, entry: e.Entry, fact: e.ApprovalClosed) -> None:
    _move(_approval(run, entry), ("pending", "approved"), status=fact.how, closed_at=entry.t, closed_why=fact.why)


def decided(run: int, entry: e.Entry, fact: e.Decided) -> None:
    rows = _approval(run, entry)
    status = "approved" if fact.vote == "approve" else "rejected"
    _move(rows, ("pending",), status=status, closed_at=entry.t)
    Decision.objects.create(
        approval=rows.get(), person_id=entry.person or 0, vote=fact.vote, why=fact.why, digest=fact.digest, at=entry.t
    )


def call_started(run: int, entry: e.Entry, fact: e.CallStarted) -> None:
    if fact.via == "approval":
        rows = Approval.objects.filter(run=run, turn=entry.turn, ordinal=entry.ordinal, status="approved")
        _move(rows, ("approved",), status="consumed")


def question_asked(run: int, entry: e.Entry, fact: e.QuestionAsked) -> None:
    Question.objects.create(
        run_id=run, turn=entry.turn, ordinal=entry.ordinal, text=fact.question, schema=fact.schema, created_at=entry.t
    )


def question_answered(run: int, entry: e.Entry, fact: e.QuestionAnswered) -> None:
    rows = Question.objects.filter(run=run, turn=entry.turn, ordinal=entry.ordinal)
    _move(rows, ("open",), status="answered", answer=fact.answer, person=entry.person, closed_at=entry.t)


def withdraw_questions(run: int, entry: e.Entry, fact: e.Fact) -> None:
    Question.objects.filter(run=run, status="open").update(status="withdrawn", closed_at=entry.t)


def late_row(entry: e.Entry, fact: e.LateEvidence) -> dict[str, Any]:
    """Columns of a call of an earlier turn that was held to be not executed and turns out to be done."""
    return _outcome(entry, fact) | {"status": "done", "outcome": fact.outcome, "presumed": False}


def late_evidence(run: int, entry: e.Entry, fact: e.LateEvidence) -> None:
    row = late_row(entry, fact)
    values = {name: json.loads(v) if TYPES.get(name) == "jsonb" else v for name, v in row.items()}
    Call.objects.filter(run=run, turn=entry.turn, ordinal=entry.ordinal, status="not_executed").update(**values)


# Facts whose rows are written one by one through the ORM: rare, and never in the hot path.
RARE: dict[type[e.Fact], Callable[[int, e.Entry, Any], None]] = {
    e.ApprovalRequested: approval_requested,
    e.ApprovalClosed: approval_closed,
    e.Decided: decided,
    e.CallStarted: call_started,
    e.QuestionAsked: question_asked,
    e.QuestionAnswered: question_answered,
    e.CancelAsked: withdraw_questions,
    e.RunEnded: withdraw_questions,
    e.LateEvidence: late_evidence,
}


def is_rare(entry: e.Entry, touched: Container[tuple[int, int]]) -> bool:
    """True if the fact writes rows through the ORM: no start without approval, no evidence on a call in the state."""
    if isinstance(entry.fact, e.LateEvidence):
        return (entry.turn, entry.ordinal) not in touched
    return type(entry.fact) in RARE and not (isinstance(entry.fact, e.CallStarted) and entry.fact.via != "approval")
