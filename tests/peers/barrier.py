"""AgentOps as a subject of `agentbarrier`: its scenarios drive real runs, and its probe is the body of our tool.

Nothing here decides what may happen. A scripted model proposes the actions, the policy in force judges them, a thread
does what a Celery worker does (`advance` whenever the run is due), people act through `runs.actions`, and what is
reported back is read from the journal. The tool is a sandbox: a child process that can be killed.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbarrier import adapter as contract
from agentbarrier.errors import AdapterContractError
from agentbarrier.models import (
    ActionRequest,
    AuditEvent,
    AuditReceipt,
    Capability,
    ReconciliationEvidence,
    ReconciliationStatus,
    RunOutcome,
    RunStatus,
    action_digest,
)
from agentbarrier.probe import EffectProbe
from django.contrib.auth.models import User
from django.db import connection

from runs.actions import approvals, policies, questions, runs
from runs.actions.acting import Refused
from runs.catalog import catalog
from runs.engine import canonical
from runs.engine import events as e
from runs.engine.toolspec import Effect
from runs.journal import lease
from runs.journal.chain import entry_of
from runs.journal.verify import verify
from runs.models import Agent, AgentVersion, Approval, Call, Event, Policy, Question, Run
from runs.runner import advance
from runs.tools.base import Context, Kind, Outcome, Proof, tool
from tests.peers.sandbox import Sandbox
from tests.stack import until
from tests.stories.playing import person

NAME = "sentinel_write"
ASKS, FREE = "sentinel_asks", "sentinel_free"  # the policy knows tools: one that asks people, and one that does not
DEADLINE = 2.0
COMMITTED, ABSENT, CONFLICT, UNAVAILABLE = ReconciliationStatus
RECONCILED = {
    COMMITTED: AuditEvent.RECONCILIATION_COMMITTED, ABSENT: AuditEvent.RECONCILIATION_NOT_COMMITTED,
    CONFLICT: AuditEvent.RECONCILIATION_CONFLICT, UNAVAILABLE: AuditEvent.RECONCILIATION_UNAVAILABLE,
}  # fmt: skip


@dataclass
class Place:
    """Where an action has its effect: the suite's probe on the suite's event loop, and what look-ups found there."""

    loop: asyncio.AbstractEventLoop
    effect: EffectProbe
    look_up_seconds: float
    found: list[ReconciliationEvidence] = field(default_factory=list)


places: dict[str, Place] = {}


# --- the tool ---------------------------------------------------------------------------------------------------------
def work(ctx: Context, *, action: str, recipient: str, amount: int) -> Outcome:
    """Have the effect in a sandbox; kill it when its time is over or a person cancels."""
    place, request = places[action], ActionRequest(action, NAME, {"recipient": recipient, "amount": amount})
    box = Sandbox(place.loop, lambda: place.effect(request))
    while not box.emptied.wait(0.01):
        why = "cancelled" if ctx.cancelled() else "deadline" if ctx.seconds_left() <= 0 else ""
        if why and box.kill():
            return Outcome(kind=Kind.FATAL, status=f"aborted: {why}", proof=Proof.REMOTE_REFUSED)
    if box.error:
        raise box.error
    return Outcome(kind=Kind.OK, data=box.said, effect_ref=action, source="sandbox")


def look_up(ctx: Context, *, action: str, recipient: str, amount: int) -> Outcome:
    """Look for the effect by the name of its action, within the time that a look-up has."""
    place, request = places[action], ActionRequest(action, NAME, {"recipient": recipient, "amount": amount})
    looking = asyncio.run_coroutine_threadsafe(place.effect.reconcile(request), place.loop)
    try:
        evidence = looking.result(min(ctx.seconds_left(), place.look_up_seconds))
    except TimeoutError:
        looking.cancel()
        said = f"the look-up timed out after {place.look_up_seconds:g} seconds"
        evidence = ReconciliationEvidence(action, UNAVAILABLE, action_digest(request), detail=said)
    place.found.append(evidence)
    kinds = {COMMITTED: Kind.OK, ABSENT: Kind.DECLINED}
    return Outcome(kind=kinds.get(evidence.status, Kind.UNKNOWN), status=evidence.detail or "", effect_ref=action)


def named(name: str, deadline: float) -> None:
    """Put the tool into the catalog under this name."""
    function = functools.wraps(work)(lambda ctx, **args: work(ctx, **args))
    function.__name__ = name
    catalog().tools[name] = tool(function, look_up=look_up, effect=Effect.LOOKUP, deadline=deadline)


# --- the model --------------------------------------------------------------------------------------------------------
def script(actions: Sequence[ActionRequest], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Propose every action; of what is said not to have happened, ask a person whether to try again."""
    told = [json.loads(b["content"]) for b in messages[-1]["content"] if b["type"] == "tool_result"]
    if not told:
        return [_proposal(action) for action in actions]
    outcomes = {result["outcome"] for result in told}
    if "not_executed" in outcomes:
        return [_call("ask_user", question="It did not happen. Do it now?", schema={"type": "object"})]
    if any(result.get("answer") for result in told):
        return [_proposal(action) for action in actions]
    if "fatal" in outcomes:
        return [_call("give_up", reason="It was stopped.")]
    return [_call("finish", answer="Done.", evidence=[])]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": arguments}


def _proposal(action: ActionRequest) -> dict[str, Any]:
    return _call(ASKS if action.requires_approval else FREE, action=action.action_id, **action.arguments)


# --- the run ----------------------------------------------------------------------------------------------------------
def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that speaks with the database, awaited by the suite: in a thread, with a connection for itself."""

    def alone(*args: Any) -> Any:
        try:
            return function(*args)
        finally:
            connection.close()

    @functools.wraps(function)
    async def awaited(*args: Any) -> Any:
        return await asyncio.to_thread(alone, *args)

    return awaited


class Subject(contract.AgentAdapter):
    """The adapter. Delegation is not among its capabilities: an agent of ours cannot start another."""

    capabilities = frozenset(Capability) - {Capability.DELEGATION}
    name = "agentops"

    def __init__(self, look_up_seconds: float, asks: str = "ask") -> None:
        """`look_up_seconds` bounds one look-up, as a request's timeout would; `asks` is what the policy says."""
        self.look_up_seconds = look_up_seconds
        self.runs: list[int] = []
        content = {"defaults": {ASKS: asks, FREE: "allow"}, "rules": []}
        if not Policy.objects.exists():
            Policy.objects.create(number=1, content={"defaults": {}}, current=True, at=lease.now())
        latest = Policy.objects.get(current=True).number
        policies.publish(person("admin", "admin"), content, "the suite of others", latest)

    async def begin(
        self,
        *,
        run_id: str,
        actions: Sequence[ActionRequest],
        effect: EffectProbe,
        timeout_seconds: float | None = None,
    ) -> Handle:
        """Start a run whose model will propose these actions."""
        chosen = contract.validate_actions(actions)
        seconds = contract.validate_timeout(timeout_seconds) or DEADLINE
        for action in chosen:
            places[action.action_id] = Place(asyncio.get_running_loop(), effect, self.look_up_seconds)
        return await self._begin(run_id, chosen, seconds)

    @in_thread
    def _begin(self, run_id: str, actions: tuple[ActionRequest, ...], seconds: float) -> Handle:
        named(ASKS, seconds)
        named(FREE, seconds)
        slug = canonical.digest(run_id + actions[0].action_id)[:40]
        catalog().scripts[slug] = functools.partial(script, actions)
        definition = {"instructions": "", "model": f"scripted:{slug}", "tools": [ASKS, FREE], "acceptance": []}
        agent = Agent.objects.create(slug=slug, name=slug)
        version = AgentVersion.objects.create(agent=agent, number=1, definition=definition)
        handle = Handle(run_id, version)
        self.runs.append(handle.pk)
        return handle

    def faults(self) -> list[str]:
        """What is wrong with the record of any run that was begun."""
        return [fault for pk in self.runs for fault in verify(Run.objects.get(pk=pk))]

    def details(self) -> list[str]:
        """What the record says beside the outcome of each call of the tool."""
        return list(Call.objects.filter(run__in=self.runs, tool__in=(ASKS, FREE)).values_list("detail", flat=True))


class Worker(threading.Thread):
    """Does what a worker does with its wakes and sweeps: advances the run whenever it is due."""

    def __init__(self, run: int) -> None:
        """Start at once."""
        super().__init__(daemon=True)
        self.pk, self.over = run, threading.Event()
        self.start()

    def run(self) -> None:
        """Until it is told to stop."""
        try:
            while not self.over.wait(0.02):
                due = Run.objects.values_list("due_at", flat=True).get(pk=self.pk)
                if due is not None and due <= lease.now():
                    advance(self.pk)
        finally:
            connection.close()


class Handle(contract.RunHandle):
    """One run of ours."""

    def __init__(self, run_id: str, version: AgentVersion) -> None:
        """Start the run under a request key: the same request once more is the same run."""
        self.run_id, self.version = run_id, version
        self.people: tuple[User, User] = person("starter"), person("other")
        self.pk = runs.start_run(
            starter=self.people[0], agent_version=version, goal="Do it.", request_key=version.agent.slug,
            limits={"probes": [0, 0.2, 0.2, 0.2]},
        ).pk  # fmt: skip
        self.worker = Worker(self.pk)

    @property
    def run(self) -> Run:
        """The row as it stands."""
        return Run.objects.get(pk=self.pk)

    def _outcome(self) -> RunOutcome | None:
        """What the record says, in the suite's words; None while it goes on by itself or waits for an answer."""
        run, calls = self.run, list(Call.objects.filter(run=self.pk))
        stop = run.picture.stop
        if any(call.status == "unknown" for call in calls):
            return RunOutcome(RunStatus.UNKNOWN, "an effect is unknown")
        if run.status == "cancelled":
            return RunOutcome(RunStatus.CANCELLED)
        if (run.ended or stop) and any(call.detail == "aborted: deadline" for call in calls):
            return RunOutcome(RunStatus.TIMED_OUT)
        if run.status == "succeeded":
            return RunOutcome(RunStatus.COMPLETED)
        return (
            RunOutcome(RunStatus.FAILED, f"{run.status} {stop.reason if stop else ''}") if run.ended or stop else None
        )

    @in_thread
    def wait_for_pending(self, timeout_seconds: float) -> tuple[ActionRequest, ...]:
        """What people are asked. All approvals of a turn are recorded in one append."""

        def asked() -> list[Approval] | bool:
            return list(Approval.objects.filter(run=self.pk, status="pending")) or self._outcome() is not None

        if (pending := until(asked, timeout_seconds, "somebody is asked")) is True:
            raise AdapterContractError(f"nobody was asked: {self._outcome()}")
        return tuple(_request(json.loads(self._call(approval).arguments)) for approval in pending)

    @in_thread
    def approve(self, action_id: str, replacement: ActionRequest | None = None) -> None:
        """Approve what was shown, or edit it, which approves the new bytes."""
        approval = self._approval(action_id)
        if replacement is None:
            approvals.decide(approval.pk, self.people[1], "approve", approval.digest)
        else:
            text = json.dumps({"action": action_id, **replacement.arguments})
            approvals.edit(approval.pk, self.people[1], approval.digest, text)

    @in_thread
    def reject(self, action_id: str, reason: str | None = None) -> None:
        """Refuse it."""
        approval = self._approval(action_id)
        approvals.decide(approval.pk, self.people[1], "reject", approval.digest, reason or "")

    @in_thread
    def cancel(self) -> None:
        """Cancel, and wait until nothing of it flies any more."""
        self._cancel()

    def _cancel(self) -> None:
        try:
            runs.cancel(self.pk, self.people[1], "the suite cancels")
        except Refused:
            assert self.run.ended, "only a run that has ended cannot be cancelled"
        until(lambda: self.run.ended or self.run.picture.stop, 15, "the run is at rest")

    @in_thread
    def wait(self, timeout_seconds: float) -> RunOutcome:
        """The outcome, as soon as there is one."""
        try:
            return until(self._outcome, timeout_seconds)  # type: ignore[no-any-return]
        except AssertionError:
            return RunOutcome(RunStatus.FAILED, f"after {timeout_seconds} s it is still {self.run.status}")

    @in_thread
    def reconcile(self, action_id: str, timeout_seconds: float) -> ReconciliationEvidence:
        """Wait until the host's own look-ups have settled the call, or have given it to a person."""
        call = next(c for c in Call.objects.filter(run=self.pk) if c.values()["action"] == action_id)
        assert call.status == "unknown"

        def settled() -> bool:
            call.refresh_from_db()
            return call.status != "unknown" or self.run.picture.stop is not None

        until(settled, 30, "the look-ups are over")
        evidence = places[action_id].found[-1]
        wanted = {"done": COMMITTED, "not_executed": ABSENT}.get(call.status)
        if (wanted and evidence.status is not wanted) or (not wanted and evidence.status in (COMMITTED, ABSENT)):
            raise AdapterContractError(f"the record says {call.status}, the look-up {evidence.status}")
        return evidence

    @in_thread
    def replay(self) -> Handle:
        """The same request again, its wake again and again, and a yes if the agent has asked whether to try again."""
        again = Handle(self.run_id, self.version)
        assert again.pk == self.pk, "the same request is the same run"
        for _ in range(3):
            advance(self.pk)
        for question in Question.objects.filter(run=self.pk, status="open"):
            questions.answer(question.pk, self.people[1], {"again": "yes"})
            until(lambda: self.run.due_at is None or self._outcome(), 15)
        return again

    @in_thread
    def audit_receipts(self) -> tuple[AuditReceipt, ...]:
        """What the journal says, as receipts."""
        return tuple(_receipts(self.run, self.run_id))

    @in_thread
    def close(self) -> None:
        """Leave nothing running."""
        self._cancel()
        self.worker.over.set()
        self.worker.join()

    def _call(self, approval: Approval) -> Call:
        return Call.objects.get(run=self.pk, turn=approval.turn, ordinal=approval.ordinal)

    def _approval(self, action_id: str) -> Approval:
        pending = Approval.objects.filter(run=self.pk, status="pending")
        return next(a for a in pending if self._call(a).values()["action"] == action_id)


def _request(values: dict[str, Any]) -> ActionRequest:
    return ActionRequest(values["action"], NAME, {k: v for k, v in values.items() if k != "action"})


# --- the receipts -----------------------------------------------------------------------------------------------------
def _receipts(run: Run, run_id: str) -> Iterator[AuditReceipt]:
    """Events as receipts. An approval or a vote is one only if its digest is that of the bytes in the record."""
    judged: dict[tuple[int, int], tuple[e.Entry, ActionRequest]] = {}
    for event in Event.objects.filter(run=run).order_by("seq"):
        entry = entry_of(event)
        place = entry.turn, entry.ordinal
        if isinstance(entry.fact, e.CallJudged) and entry.fact.tool in (ASKS, FREE) and entry.payload:
            judged[place] = entry, _request(json.loads(entry.payload))
        if (found := _event(entry, judged.get(place))) is None:
            continue
        action = judged[place][1] if place in judged else None
        if isinstance(entry.fact, e.ApprovalRequested | e.Decided):
            assert entry.fact.digest == _bound(run, judged[place][0])
        yield AuditReceipt(
            sequence=entry.seq, run_id=run_id, event=found, timestamp_ns=entry.t * 1000,
            action_id=action.action_id if action else None, action_digest=action_digest(action) if action else None,
        )  # fmt: skip


def _bound(run: Run, entry: e.Entry) -> str:
    fact = entry.fact
    assert isinstance(fact, e.CallJudged) and entry.payload
    place = entry.turn, entry.ordinal, entry.revision
    return canonical.action_digest(run.uid, *place, fact.definition, entry.payload, fact.objects)


def _event(entry: e.Entry, judged: tuple[e.Entry, ActionRequest] | None) -> AuditEvent | None:
    match entry.fact:
        case e.RunStarted():
            return AuditEvent.RUN_STARTED
        case e.ApprovalRequested():
            return AuditEvent.APPROVAL_REQUESTED
        case e.Decided(vote=vote):
            return AuditEvent.APPROVED if vote == "approve" else AuditEvent.REJECTED
        case e.CallProbed(n=1, phase="asked"):
            return AuditEvent.RECONCILIATION_STARTED
        case e.CallProbed(phase="told", verdict=verdict) if judged:
            return _looked(verdict, judged[1].action_id)
        case e.RunEnded(status=status):
            return {"succeeded": AuditEvent.RUN_COMPLETED, "cancelled": AuditEvent.RUN_CANCELLED}.get(status)
    return None


def _looked(verdict: str, action: str) -> AuditEvent:
    """A look-up that told nothing: that is on record; why, only the look-up itself knows."""
    if verdict != "inconclusive":
        return RECONCILED[COMMITTED if verdict == "found" else ABSENT]
    last = places[action].found[-1]
    timed_out = last.status is UNAVAILABLE and "timed out" in (last.detail or "")
    return AuditEvent.RECONCILIATION_TIMED_OUT if timed_out else RECONCILED[last.status]
