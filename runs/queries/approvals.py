"""Everything that a person must see before they decide, attest or answer."""

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from runs.catalog import spec
from runs.engine.toolspec import ToolSpec
from runs.journal.lease import now
from runs.models import Approval, Call, Decision, Event, Policy, Question, Run
from runs.queries import words
from runs.queries.display import Leaf, leaves, one_line, visible
from runs.queries.facts import Note
from runs.queries.inbox import probing, why_not
from runs.queries.runs import holds
from runs.queries.timeline import notes_of, said_by
from runs.queries.viewer import Viewer

STEPS, HISTORY = 5, 10


@dataclass
class Step:
    """A call in short."""

    call: Call
    sign: words.Sign
    text: str
    came_to: str


@dataclass
class CallSheet:
    """A call in full: what it does in words made by code, its exact arguments, what is known of its objects."""

    run: Run
    call: Call
    headline: str
    leaves: list[Leaf]
    hidden: int
    effect: tuple[Any, Any]
    risk: str
    risk_word: Any
    steps: list[Step]
    history: list[Step]
    said: str
    spec: ToolSpec | None


@dataclass
class ApprovalSheet(CallSheet):
    """A call that waits, or waited, for a decision."""

    approval: Approval
    sign: words.Sign
    rule: str
    why: str
    policy: int
    decisions: list[Decision]
    why_not: str
    open: bool
    expired: bool
    before: list[Leaf]
    others: list[Approval]


def approval_sheet(approval_id: int, viewer: Viewer) -> ApprovalSheet | None:
    """What is asked, on what grounds, and whether this viewer may answer."""
    rows = Approval.objects.select_related("run__agent_version__agent", "run__starter")
    approval = rows.filter(pk=approval_id).first()
    if approval is None:
        return None
    run = approval.run
    sheet = call_sheet(run, Call.objects.get(run=run, turn=approval.turn, ordinal=approval.ordinal))
    about = Event.objects.filter(run=run, turn=approval.turn, ordinal=approval.ordinal)
    judged = [
        json.loads(b)
        for b in about.filter(kind="CallJudged", revision=approval.revision).values_list("body", flat=True)
    ]
    verdict = judged[-1] if judged else {}
    expired = bool(approval.expires_at and approval.expires_at <= now())
    return ApprovalSheet(
        **vars(sheet), approval=approval, sign=words.APPROVAL[approval.status], rule=visible(approval.rule),
        why=visible(verdict.get("why", "")), policy=verdict.get("policy", 0),
        decisions=list(approval.decisions.select_related("person").order_by("at")),
        why_not=why_not(viewer, approval.exclude), open=approval.status == "pending" and not expired, expired=expired,
        before=_proposed(about, sheet.call),
        others=_others(approval),
    )  # fmt: skip


def _others(approval: Approval) -> list[Approval]:
    same = Approval.objects.filter(run=approval.run_id, turn=approval.turn, ordinal=approval.ordinal)
    return list(same.exclude(pk=approval.pk).order_by("n"))


def _proposed(about: Any, call: Call) -> list[Leaf]:
    """The model's own arguments, where a person has changed them since."""
    if call.revision == 1:
        return []
    first = (
        about.filter(kind="CallJudged", revision=1)
        .exclude(payload=None)
        .order_by("seq")
        .values_list("payload", flat=True)
    )
    return leaves(json.loads(first.first() or "{}"))


def call_sheet(run: Run, call: Call) -> CallSheet:
    """A call in full."""
    arguments = call.values()
    found = spec(call.tool)
    policy = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    rows = leaves(arguments)
    risk = words.risk_of(policy, call.tool, found)
    answered = (
        Event.objects.filter(run=run, turn=call.turn, kind="ModelAnswered").values_list("payload", flat=True).first()
    )
    return CallSheet(
        run, call, words.headline(call.tool, arguments), rows, sum(leaf.hidden for leaf in rows),
        words.EFFECT[call.effect], risk, words.RISK[risk], _steps(run, call), _history(call),
        visible(said_by(answered)), found,
    )  # fmt: skip


def _step(call: Call) -> Step:
    text = words.headline(call.tool, call.values()) if call.status != "invalid" else visible(call.tool)
    sign = words.call_sign(call.status, call.outcome, call.tool)
    return Step(call, sign, text, one_line(" · ".join(x for x in (call.effect_ref, call.detail, call.why) if x), 160))


def _steps(run: Run, call: Call) -> list[Step]:
    earlier = Q(turn__lt=call.turn) | Q(turn=call.turn, ordinal__lt=call.ordinal)
    rows = Call.objects.filter(earlier, run=run).order_by("-turn", "-ordinal")[:STEPS]
    return [_step(row) for row in reversed(rows)]


def _history(call: Call) -> list[Step]:
    """What agents already did to the objects of this call, in this run and in others; newest first."""
    if not call.objects_touched:
        return []
    wanted = Q(pk__in=[])
    for key in call.objects_touched:
        wanted |= holds("text", key)
    rows = Call.objects.annotate(text=Cast("objects_touched", TextField())).filter(wanted)
    rows = rows.exclude(effect__in=("read", "host")).exclude(run=call.run_id, turn=call.turn, ordinal=call.ordinal)
    done = rows.filter(status__in=("done", "unknown", "executing", "not_executed"))
    return [_step(row) for row in done.select_related("run").order_by("-run_id", "-turn", "-ordinal")[:HISTORY]]


@dataclass
class AttestSheet(CallSheet):
    """A call of which nobody knows what became."""

    probes: list[Note]
    probing: str
    why_not: str
    open: bool


def attest_sheet(run: Run, turn: int, ordinal: int, viewer: Viewer) -> AttestSheet | None:
    """The call, what was already tried to find out, and whether a person is asked."""
    call = Call.objects.filter(run=run, turn=turn, ordinal=ordinal).first()
    if call is None or call.effect in ("host",):
        return None
    kinds = ("CallStarted", "CallEnded", "CallProbed", "CallSettled", "LateEvidence")
    return AttestSheet(
        **vars(call_sheet(run, call)), probes=notes_of(run.pk, turn, ordinal, kinds), probing=probing(run, call),
        why_not=why_not(viewer), open=call.status == "unknown",
    )  # fmt: skip


@dataclass
class QuestionSheet:
    """What an agent asks."""

    question: Question
    run: Run
    text: str
    steps: list[Step]
    why_not: str
    open: bool
    answer: list[Leaf]


def question_sheet(question_id: int, viewer: Viewer) -> QuestionSheet | None:
    """The question, the last steps, and whether this viewer may answer."""
    rows = Question.objects.select_related("run__agent_version__agent", "run__starter", "person")
    question = rows.filter(pk=question_id).first()
    if question is None:
        return None
    run = question.run
    call = Call(run=run, turn=question.turn, ordinal=question.ordinal)
    return QuestionSheet(
        question, run, visible(question.text), _steps(run, call), why_not(viewer), question.status == "open",
        leaves(question.answer) if question.answer is not None else [],
    )  # fmt: skip
