"""A run played in this process by the real runner on a real database: the model is a list of answers.

The tools do something to `world`, a list that nobody but they write: the oracle outside the journal.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from django.contrib.auth.models import Group, User
from pydantic import Field

from runs.actions import approvals, policies, runs
from runs.catalog import catalog
from runs.engine.policy import starter_default
from runs.engine.toolspec import Effect
from runs.journal import gate, lease
from runs.journal.verify import verify
from runs.models import Agent, AgentVersion, Approval, Call, Event, Policy, Run
from runs.runner import advance
from runs.tools.base import Context, Kind, Outcome, Proof, tool

_numbers = itertools.count(1)
world: list[tuple[str, dict[str, Any]]] = []

Name = Annotated[str, Field(pattern=r"^[a-z]{1,10}$")]


def look(ctx: Context, *, name: Name, depth: int = 1) -> Outcome:
    """Read a thing; there is none of the name nobody."""
    if name == "nobody":
        return Outcome(kind=Kind.DECLINED, status="not_found", proof=Proof.REMOTE_REFUSED)
    return Outcome(kind=Kind.OK, data={"name": name, "depth": depth}, source="things", evidence=(f"thing:{name}:v1",))


def tick(ctx: Context) -> Outcome:
    """Read something that is new each time."""
    return Outcome(kind=Kind.OK, data={"now": next(_numbers)}, source="clock", evidence=(f"tick:{next(_numbers)}",))


def poke(ctx: Context, *, name: Name, times: int) -> Outcome:
    """Do something that asks a person first."""
    world.append(("poke", {"name": name, "times": times, "key": ctx.key}))
    return Outcome(kind=Kind.OK, data={"poked": times}, evidence=(f"poke:{len(world)}",), effect_ref=str(len(world)))


def fail(ctx: Context) -> Outcome:
    """Always declines to work, with proof that nothing happened."""
    return Outcome(kind=Kind.FATAL, status="broken", proof=Proof.REMOTE_REFUSED)


TOOLS = {
    t.name: t
    for t in (
        tool(look, effect=Effect.READ, objects=("thing:{name}",)),
        tool(tick, effect=Effect.READ),
        tool(poke, effect=Effect.OPAQUE, headline="Poke {name}", objects=("thing:{name}",)),
        tool(fail, effect=Effect.READ),
    )
}
SCHEMA = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


def call(name: str, /, ident: str | None = None, **arguments: Any) -> dict[str, Any]:
    """A call of the model; the provider gives it an id unless it has one."""
    block = {"type": "tool_use", "name": name, "input": arguments}
    return block if ident is None else block | {"id": ident}


def text(words: str) -> dict[str, Any]:
    """What the model says."""
    return {"type": "text", "text": words}


def finish(*evidence: str) -> list[dict[str, Any]]:
    """The end with evidence."""
    return [call("finish", answer="Done.", evidence=list(evidence))]


class Play:
    """One run. `requests` are the conversations that the model was sent."""

    def __init__(self, *answers: Any, checks: Any = (), tools: tuple[str, ...] = tuple(TOOLS), **options: Any) -> None:
        self.answers: Iterator[Any] = iter(answers)
        self.requests: list[list[dict[str, Any]]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        slug = f"play-{next(_numbers)}"
        catalog().scripts[slug] = self._say
        definition = {
            "instructions": "Play.", "model": options.pop("model", f"scripted:{slug}"),
            "tools": list(tools), "acceptance": list(checks),
            "limits": options.pop("limits", {}),
        }  # fmt: skip
        agent = Agent.objects.create(slug=slug, name=slug)
        version = AgentVersion.objects.create(agent=agent, number=1, definition=definition)
        self.pk = runs.start_run(starter=person("starter"), agent_version=version, goal="Play.", **options).pk

    def _say(self, messages: list[dict[str, Any]]) -> Any:
        self.requests.append(messages)
        self.meanwhile()
        return next(self.answers)

    def go(self) -> Play:
        """Advance until only time or a person can."""
        while (due := self.run.due_at) is not None and due <= lease.now():
            advance(self.pk)
        return self

    @property
    def run(self) -> Run:
        """The row as it stands."""
        return Run.objects.get(pk=self.pk)

    @property
    def stop(self) -> tuple[str, str]:
        """Status and reason of the stop; empty without one."""
        stop = self.run.picture.stop
        return (stop.status, stop.reason) if stop else ("", "")

    def call(self, turn: int = 1, ordinal: int = 1) -> Call:
        """One call."""
        return Call.objects.get(run=self.pk, turn=turn, ordinal=ordinal)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Bodies of the events of a kind."""
        rows = Event.objects.filter(run=self.pk, kind=kind).order_by("seq")
        return [json.loads(row.body) for row in rows]

    @property
    def approval(self) -> Approval:
        """The newest approval."""
        return Approval.objects.filter(run=self.pk).latest("id")

    def told(self, request: int = -1) -> list[dict[str, Any]]:
        """Results in the last message of a request, parsed."""
        blocks = self.requests[request][-1]["content"]
        return [json.loads(b["content"]) for b in blocks if b["type"] == "tool_result"]

    def words(self, request: int = -1) -> str:
        """Texts in the last message of a request."""
        return "\n".join(b["text"] for b in self.requests[request][-1]["content"] if b["type"] == "text")

    def approve(self, by: str = "other") -> Play:
        """Approve what is asked, and go on."""
        approvals.decide(self.approval.pk, person(by), "approve", self.approval.digest)
        return self.go()


def person(name: str, *groups: str) -> User:
    """A person of these groups, an operator unless said."""
    made, _ = User.objects.get_or_create(username=name)
    for group in groups or ("operator",):
        made.groups.add(Group.objects.get_or_create(name=group)[0])
    return made


def publish(**content: Any) -> None:
    """A new policy, as an admin publishes it."""
    current = Policy.objects.get(current=True)
    policies.publish(person("admin", "admin"), {**current.content, **content}, "a story", current.number)


def first_policy() -> None:
    """Reads run, the rest asks."""
    defaults = {name: starter_default(t.spec) for name, t in TOOLS.items()}
    Policy.objects.create(number=1, content={"defaults": defaults}, current=True, at=lease.now())
    gate.current_policy(fresh=True)


def faults() -> dict[int, list[str]]:
    """What is wrong with the record of any run: among other things a fold that differs from the row."""
    return {run.pk: found for run in Run.objects.all() if (found := verify(run))}
