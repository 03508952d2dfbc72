"""A run told step by step through the journal itself: real rows, real catalog, no worker."""

import json
import uuid
from typing import Any

from django.contrib.auth.models import Group, User

from runs.actions import runs as acts
from runs.catalog import catalog
from runs.engine import events as e
from runs.engine.canonical import digest, operation_key
from runs.engine.messages import observation
from runs.engine.next_step import stop_entry
from runs.engine.policy import starter_default
from runs.journal import gate, lease
from runs.journal.append import Draft, Picture, append
from runs.models import Agent, AgentVersion, Approval, Call, Event, Policy, Run

REFUND = {"order_id": "O-1042", "amount": "80.00", "currency": "EUR", "reason": "broken"}
MESSAGE = {"order_id": "O-1042", "text": "We are sorry."}
ORDER = {"order_id": "O-1042"}


def person(name: str, group: str = "operator") -> User:
    made, _ = User.objects.get_or_create(username=name)
    made.groups.add(Group.objects.get_or_create(name=group)[0])
    return made


def publish(number: int, **content: Any) -> None:
    defaults = {name: starter_default(tool.spec) for name, tool in catalog().tools.items()}
    Policy.objects.filter(current=True).update(current=False)
    Policy.objects.create(number=number, content={"defaults": defaults, **content}, current=True, at=lease.now())
    gate.current_policy(fresh=True)


class Story:
    """`picture` is what the holder of the lease believes; each verb appends."""

    def __init__(self, **options: Any) -> None:
        if not Policy.objects.exists():
            publish(1)
        gate.current_policy(fresh=True)
        slug = uuid.uuid4().hex[:12]
        definition = {"instructions": "", "model": "scripted:none", "tools": sorted(catalog().tools), "acceptance": []}
        agent = Agent.objects.create(slug=slug, name=slug)
        version = AgentVersion.objects.create(agent=agent, number=1, definition=definition)
        self.starter = person("starter")
        self.run = acts.start_run(starter=self.starter, agent_version=version, goal="Help.", **options)
        claimed = lease.claim(self.run.pk)
        assert claimed is not None
        self.picture = Picture.of(claimed[0], mine=True)

    def draft(self, at: int = 0) -> Draft:
        return Draft(self.picture, at or lease.now())

    def keep(self, draft: Draft, **options: Any) -> "Story":
        self.picture = append(draft, **options)
        return self

    def reload(self) -> "Story":
        self.picture = Picture.of(self.row, mine=True)
        return self

    def claim(self) -> "Story":
        claimed = lease.claim(self.run.pk)
        assert claimed is not None, "the run is not due"
        self.picture = Picture.of(claimed[0], mine=True)
        return self

    @property
    def row(self) -> Run:
        return Run.objects.get(pk=self.run.pk)

    @property
    def kinds(self) -> list[str]:
        return list(Event.objects.filter(run=self.run).order_by("seq").values_list("kind", flat=True))

    def call(self, ordinal: int = 1) -> Call:
        return Call.objects.get(run=self.run, turn=self.picture.state.turn, ordinal=ordinal)

    def approval(self, ordinal: int = 1) -> Approval:
        turn = self.picture.state.turn
        return Approval.objects.filter(run=self.run, turn=turn, ordinal=ordinal).latest("n")

    def turn(self, *calls: tuple[str, dict[str, Any]]) -> "Story":
        """The model is asked and proposes `calls`, which are judged."""
        draft, turn = self.draft(), self.picture.state.turn + 1
        if not draft.state.segment:
            draft.add(e.SegmentStarted(1, "start", 0, "t"))
        draft.add(e.ModelAsked(1, 10, 0), turn=turn, payload='[{"text": "Goal", "type": "text"}]')
        draft.add(e.ModelAnswered("tool_use", 5, 10, len(calls), 3), actor="model", payload="[]")
        for ordinal, (tool, args) in enumerate(calls, 1):
            spec = catalog().tools[tool].spec
            gate.propose(draft, spec, ordinal, f"toolu_{turn}_{ordinal}", spec.check(json.dumps(args)))
        return self.keep(draft)

    def approve(self, by: User, ordinal: int = 1) -> "Story":
        from runs.actions.approvals import decide

        approval = self.approval(ordinal)
        decide(approval.pk, by, "approve", approval.digest)
        return self.reload()

    def start(self, ordinal: int = 1) -> str:
        """Pass the gate and record the intent; "" if the gate refused."""
        draft = self.draft()
        args = gate.stored_arguments(self.run.pk, draft.state.turn, ordinal)
        if via := gate.admit(draft, ordinal, args):
            call = draft.state.calls[ordinal]
            uid, turn = self.picture.uid, draft.state.turn
            key = call.key or operation_key(uid, turn, ordinal, call.revision, call.definition, args)
            draft.add(
                e.CallStarted(key, call.attempt + 1, draft.now + 30_000_000, via, request=call.args), call=ordinal
            )
        self.keep(draft)
        return via

    def end(self, outcome: str = "ok", ordinal: int = 1, **fields: Any) -> "Story":
        shown = observation(outcome, "", {"n": ordinal}, (), "", "") if outcome != "unknown" else None
        seen = {"observation": digest(shown)} if shown else {}
        draft = self.draft().add(e.CallEnded(outcome, **seen, **fields), call=ordinal, actor="tool", payload=shown)
        return self.keep(draft)

    def add(self, fact: e.Fact, release: bool = False, **header: Any) -> "Story":
        return self.keep(self.draft().add(fact, **header), release=release)

    def park(self) -> "Story":
        return self.keep(self.draft(), release=True)

    def stop(self, step: Any) -> "Story":
        return self.keep(self.draft().put(stop_entry(self.picture.state, step)), release=True)
