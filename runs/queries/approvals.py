"""Everything that a person must see before they decide, attest or answer, or set a stopped run going again."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.catalog import spec
from runs.engine.limits import SECOND
from runs.engine.machines import RUN_STOPS
from runs.engine.toolspec import ToolSpec
from runs.journal.lease import now
from runs.models import Approval, Call, Decision, Event, Question, Run
from runs.queries import lookups, words
from runs.queries.cards import Argument, Card, Line, Readout, arguments, card_of, compared, raw
from runs.queries.display import Leaf, leaves, visible
from runs.queries.facts import Note
from runs.queries.history import Predecessor, Step, history, predecessor, step, steps
from runs.queries.items import Ended, ended, probing, why_not
from runs.queries.timeline import notes_of, said_by
from runs.queries.viewer import Viewer

Key = tuple[int, ...]
STRONG = ("high",)  # risks that ask to type the tool's name


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
    card: Card

    @property
    def raw(self) -> str:
        """The stored text of the arguments, laid out."""
        return raw(self.call.arguments)

    @property
    def objects(self) -> str:
        """The objects that it names."""
        return ", ".join(visible(key.partition(":")[2] or key) for key in self.call.objects_touched)


@dataclass
class ApprovalSheet(CallSheet):
    """A call that waits, or waited, for a decision. `lines` are what a person changed in the model's proposal."""

    approval: Approval
    sign: words.Sign
    rule: str
    why: str
    policy: int
    decisions: list[Decision]
    why_not: str
    open: bool
    expired: bool
    arguments: list[Argument]
    lines: list[Line]
    others: list[Approval]
    predecessor: Predecessor | None
    ended: Ended | None
    clock: int = field(default_factory=now)

    @property
    def id(self) -> str:
        """Its name on the page."""
        return f"approval-{self.approval.pk}"

    @property
    def key(self) -> Key:
        """Where it stands in the inbox."""
        return key_of(self.approval)

    @property
    def confirm(self) -> str:
        """The name that must be typed before a yes; empty where a yes is enough."""
        return self.call.tool if self.risk in STRONG else ""

    @property
    def seconds(self) -> int | None:
        """Time left; None without a deadline."""
        return max(0, self.approval.expires_at - self.clock) // SECOND if self.approval.expires_at else None

    @property
    def until(self) -> int:
        """The deadline as a browser counts: milliseconds."""
        return (self.approval.expires_at or 0) // 1000

    @property
    def whole(self) -> int:
        """Seconds from the asking to the deadline."""
        return max(1, ((self.approval.expires_at or 0) - self.approval.created_at) // SECOND)

    @property
    def winner(self) -> Decision | None:
        """The decision that closed it."""
        return self.decisions[0] if self.decisions else None


def key_of(row: Approval | Question) -> Key:
    """Where an approval or a question stands in the inbox, as `inbox.Source` makes keys."""
    if isinstance(row, Question):
        return (1, row.created_at, 2, row.pk)
    return (0, row.expires_at, 0, row.pk) if row.expires_at else (1, row.created_at, 0, row.pk)


def approval_sheet(approval_id: int, viewer: Viewer) -> ApprovalSheet | None:
    """What is asked, on what grounds, and whether this viewer may answer."""
    rows = Approval.objects.select_related("run__agent_version__agent", "run__starter")
    approval = rows.filter(pk=approval_id).first()
    if approval is None:
        return None
    run = approval.run
    sheet = call_sheet(run, Call.objects.get(run=run, turn=approval.turn, ordinal=approval.ordinal))
    about = Event.objects.filter(run=run, turn=approval.turn, ordinal=approval.ordinal)
    judged = about.filter(kind="CallJudged", revision=approval.revision).order_by("seq").values_list("body", flat=True)
    verdict = json.loads(judged.last() or "{}")
    proposed = _proposed(about, sheet.call)
    decisions = list(approval.decisions.select_related("person").order_by("at"))
    is_late = bool(approval.expires_at and approval.expires_at <= now())
    others = Approval.objects.filter(run=run, turn=approval.turn, ordinal=approval.ordinal).exclude(pk=approval.pk)
    return ApprovalSheet(
        **vars(sheet), approval=approval, sign=words.APPROVAL[approval.status], rule=visible(approval.rule),
        why=visible(verdict.get("why", "")), policy=verdict.get("policy", 0), decisions=decisions,
        why_not=why_not(viewer, approval.exclude), open=approval.status == "pending" and not is_late,
        expired=approval.status == "expired" or (is_late and approval.status == "pending"),
        arguments=arguments(sheet.call.values(), proposed),
        lines=compared(proposed, sheet.call.values()) if proposed is not None else [],
        others=list(others.order_by("n")),
        predecessor=predecessor(sheet.call, approval.created_at),
        ended=ended(approval, decisions[0].person.get_username() if decisions else ""),
    )  # fmt: skip


def _proposed(about: Any, call: Call) -> Any:
    """The model's own arguments, where a person has changed them since; else None."""
    if call.revision == 1:
        return None
    first = about.filter(kind="CallJudged", revision=1).exclude(payload=None).order_by("seq")
    return json.loads(first.values_list("payload", flat=True).first() or "{}")


def call_sheet(run: Run, call: Call) -> CallSheet:
    """A call in full."""
    values, found = call.values(), spec(call.tool)
    rows = leaves(values)
    risk = words.risk_of(lookups.policy_content(), call.tool, found)
    answered = Event.objects.filter(run=run, turn=call.turn, kind="ModelAnswered").values_list("payload", flat=True)
    sheet = CallSheet(
        run, call, words.headline(call.tool, values), rows, sum(leaf.hidden for leaf in rows),
        words.EFFECT[call.effect], risk, words.RISK[risk], steps(call), history(call),
        visible(said_by(answered.first())), found, card_of(found, values, run),
    )  # fmt: skip
    sheet.card.readouts += _standing(sheet)
    return sheet


def _standing(sheet: CallSheet) -> list[Readout]:
    """What the record says of the same tool in this run, and of the same objects in all of them."""
    call = sheet.call
    same = Call.objects.filter(run=call.run_id, tool=call.tool, status__in=("done", "unknown", "executing"))
    done = same.exclude(turn=call.turn, ordinal=call.ordinal).count()
    found = [Readout(_("Done before in this run"), str(done), words.EFFECT[call.effect][0])]
    if call.objects_touched:
        count = len(sheet.history)
        note = ngettext("{n} effect of any run", "{n} effects of any run", count).format(n=count)
        found.insert(0, Readout(_("Acts on"), sheet.objects, note))
    return found


@dataclass
class AttestSheet(CallSheet):
    """A call of which nobody knows what became."""

    probes: list[Note]
    probing: str
    why_not: str
    open: bool

    @property
    def id(self) -> str:
        """Its name on the page."""
        return f"unknown-{self.call.run_id}-{self.call.turn}-{self.call.ordinal}"

    @property
    def key(self) -> Key:
        """Where it stands in the inbox."""
        return (1, self.call.started_at or 0, 1, self.call.run_id, self.call.turn, self.call.ordinal)


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

    @property
    def id(self) -> str:
        """Its name on the page."""
        return f"question-{self.question.pk}"

    @property
    def key(self) -> Key:
        """Where it stands in the inbox."""
        return key_of(self.question)


def question_sheet(question_id: int, viewer: Viewer) -> QuestionSheet | None:
    """The question, the last steps, and whether this viewer may answer."""
    rows = Question.objects.select_related("run__agent_version__agent", "run__starter", "person")
    question = rows.filter(pk=question_id).first()
    if question is None:
        return None
    run = question.run
    call = Call(run=run, turn=question.turn, ordinal=question.ordinal)
    return QuestionSheet(
        question, run, visible(question.text), steps(call), why_not(viewer), question.status == "open",
        leaves(question.answer) if question.answer is not None else [],
    )  # fmt: skip


@dataclass
class StopSheet:
    """A run that the host stopped: what it has done, and what it has not."""

    run: Run
    open: bool
    done: list[Step]
    undone: list[Step]

    @property
    def id(self) -> str:
        """Its name on the page."""
        return f"stop-{self.run.pk}"


def stop_sheet(run: Run) -> StopSheet:
    """Effects that happened, and calls that did not, of a stopped run: its last ones."""
    rows = Call.objects.filter(run=run).exclude(effect__in=("read", "host")).order_by("-turn", "-ordinal")[:12]
    calls = [step(row) for row in reversed(rows)]
    done = [s for s in calls if s.call.status in ("done", "executing", "unknown")]
    return StopSheet(run, run.status in RUN_STOPS, done, [s for s in calls if s not in done])
