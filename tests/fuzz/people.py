"""People who do anything that people can do, whether it fits or not; and, after the trouble, people who help."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group, User
from django.db import connection

from runs.actions import approvals, policies, questions
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.models import Agent, Approval, Call, Incident, Policy, Question, Run

if TYPE_CHECKING:
    from tests.fuzz.world import World

AGAIN = ("happened", "not_happened", "again")


class People:
    """Operators, a reviewer, an auditor and an admin. `did` counts their acts, and how often the host said no."""

    def __init__(self, dice: random.Random, theme: str = "") -> None:
        self.dice, self.theme, self.tampered = dice, theme, 0
        self.names = ("operator", "reviewer", "auditor", "admin")
        self.did: Counter[tuple[str, int]] = Counter()  # (act, 200 or how the host said no)
        self.attested: dict[tuple[int, int, int], str] = {}
        self.helped: dict[int, int] = {}

    def person(self, name: str) -> User:
        """Somebody, read anew as a request would."""
        return User.objects.get(username=name)

    def start(self, agent: str, order: str, seed: str, **more: Any) -> int:
        """The operator starts a run on an order of its own."""
        inputs = {"order_id": order} | {"medley": {"seed": seed}, "messenger": {"text": seed}}.get(agent, {})
        inputs |= {"day": "2026-12-04"} if agent == "pickup-soon" else {}
        version = Agent.objects.get(slug=agent).current
        made = acts.start_run(
            starter=self.person("operator"), agent_version=version, goal="Play.", inputs=inputs,
            facts={"customer": "C-7"}, **more,
        )  # fmt: skip
        return made.pk

    def act(self, world: World) -> str:
        """One act of somebody; what the host says no to is said no to, and changes nothing."""
        who = self.dice.choice((*self.names[:2], *self.names))
        run = self.dice.choice(world.runs)
        name, do = self.dice.choice(self.choices(run, self.person(who)))
        status = 200
        try:
            do()
        except Refused as no:
            status = no.status
        self.did[name, status] += 1
        return f"{who} {name} {world.runs.index(run)} {status}"

    def choices(self, run: int, who: User) -> list[tuple[str, Any]]:
        """Every act that there is, with weights by repetition; on stale ids and wrong digests too."""
        dice = self.dice
        asked = list(Approval.objects.filter(run=run).order_by("pk"))
        pending = [a for a in asked if a.status == "pending"]
        found: list[tuple[str, Any]] = []
        for approval in [*pending * 3, *([dice.choice(asked)] if asked else [])]:
            vote = dice.choice(("approve", "approve", "approve", "reject"))
            digest = approval.digest if dice.random() < 0.95 else "0" * 64
            stop = dice.random() < 0.2
            found.append(
                (vote, lambda a=approval, v=vote, d=digest, s=stop: approvals.decide(a.pk, who, v, d, "so", s))
            )
            found.append(("edit", lambda a=approval, d=digest: self._edit(a, who, d)))
        unknown = list(Call.objects.filter(run=run, status="unknown").order_by("turn", "ordinal"))
        for call in unknown * 2:
            verdict = dice.choice((*AGAIN, *["again"] * 4) if self.theme == "again" else AGAIN)
            found.append(("attest", lambda c=call, v=verdict: self.attest(c, who, v)))
        for question in Question.objects.filter(run=run, status="open").order_by("pk"):
            found += [("answer", lambda q=question: questions.answer(q.pk, who, dice.choice(("yes", 7))))] * 2
        for incident in Incident.objects.filter(run=run).order_by("pk")[:2]:
            found += [("close_incident", lambda i=incident: acts.close_incident(i.pk, who, "I looked."))] * 5
        found += self._themed(run, who, pending)
        return [
            *found,
            ("note", lambda: acts.add_note(run, who, "Mind the step.")),
            ("pause", lambda: acts.pause(run, who)), ("resume", lambda: acts.resume(run, who)),
            ("resume", lambda: acts.resume(run, who)), ("extend", lambda: self._extend(run, who)),
            *([("cancel", lambda: acts.cancel(run, who, "enough"))] if dice.random() < 0.3 else []),
            *([("close_failed", lambda: acts.close_failed(run, who, "no"))] if dice.random() < 0.3 else []),
            ("sign_off", lambda: acts.sign_off(run, who, "looked")),
            ("policy", lambda: self._policy(who)), ("roles", self._roles),
        ]  # fmt: skip

    def _themed(self, run: int, who: User, pending: list[Approval]) -> list[tuple[str, Any]]:
        """What this scenario has more of than others."""

        def approve_and_cancel() -> None:
            approvals.decide(pending[0].pk, who, "approve", pending[0].digest)
            acts.cancel(run, who, "changed my mind")

        calls = Run.objects.get(pk=run).picture.calls.values()
        match self.theme:
            case "cancel" if pending:
                return [("approve and cancel", approve_and_cancel)] * 3
            case "cancel":
                return [("cancel", lambda: acts.cancel(run, who, "enough"))]
            case "again" if any(c.status == "ready" and c.maybe_sent for c in calls):
                cancel = ("cancel", lambda: acts.cancel(run, who, "not again"))
                return [cancel, *[("four eyes", self.four_eyes)] * 3] * 4
            case "again" if pending and any(c.pending and c.maybe_sent for c in calls):
                asked = pending[0]
                return [("reject", lambda: approvals.decide(asked.pk, who, "reject", asked.digest))] * 6
            case "late" if any(c.status == "not_executed" for c in calls):
                return [("pause", lambda: acts.pause(run, who))] * 6
            case "tamper" if self.tampered < 2:
                return [("tamper", lambda: self.tamper(run))]
        return []

    def tamper(self, run: int) -> None:
        """Somebody with SQL writes beside the journal; the record is put right from its events, and an admin told."""
        if Run.objects.get(pk=run).ended:
            return  # nobody would look at it again but `verify`, which finds it
        self.tampered += 1
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_run SET state = replace(state, ':', ': ') WHERE id = %s", [run])

    def four_eyes(self) -> None:
        """Messages need somebody who did not start the run: what was approved before is asked anew."""
        current = Policy.objects.get(current=True)
        content = json.loads(json.dumps(current.content))
        rule = {"id": "four-eyes", "effect": "ask", "tools": ["send_message"], "when": [], "why": "two people"}
        content["rules"] = [r for r in content["rules"] if r["id"] != "four-eyes"] + [rule | {"exclude_starter": True}]
        self.publish(content)

    def expiring(self) -> None:
        """From now on what is asked must be answered within three seconds."""
        current = Policy.objects.get(current=True)
        content = json.loads(json.dumps(current.content))
        tools = [name for name, verdict in content["defaults"].items() if verdict == "ask"]
        content["rules"].append(
            {"id": "soon", "effect": "ask", "tools": tools, "when": [], "why": "soon", "expires": 3}
        )
        self.publish(content)

    def attest(self, call: Call, who: User, verdict: str) -> None:
        """Say what became of a call, rightly or not."""
        approvals.attest(call.run_id, call.turn, call.ordinal, who, verdict, "ref", "I looked.")
        self.attested[call.run_id, call.turn, call.ordinal] = verdict

    def _edit(self, approval: Approval, who: User, digest: str) -> None:
        call = Call.objects.get(run=approval.run_id, turn=approval.turn, ordinal=approval.ordinal)
        values = call.values()
        if "amount" in values:
            values["amount"] = self.dice.choice(("2.00", "600.00", "none"))
        elif "text" in values:
            values["text"] += " (edited)"
        approvals.edit(approval.pk, who, digest, json.dumps(values), "better")

    def _extend(self, run: int, who: User) -> None:
        limits = Run.objects.get(pk=run).picture.limits
        acts.extend_limits(
            run, who, {"turns": limits.turns + 3, "calls": limits.calls + 5, "ms": limits.ms * 2}, "more"
        )

    def _policy(self, who: User) -> None:
        """Anything from a kill switch to a rule that expires approvals soon."""
        current = Policy.objects.get(current=True)
        content = json.loads(json.dumps(current.content))
        tool = self.dice.choice(sorted(content["defaults"]))
        change = self.dice.choice(("default", "off", "on", "expires", "quiet"))
        if change == "default":
            content["defaults"][tool] = self.dice.choice(("allow", "ask", "ask", "deny"))
        elif change == "off":
            content["off"] = [tool]
        elif change in ("on", "quiet"):
            content["off"] = []
            content["rules"] = [r for r in content["rules"] if r["id"] != "soon" or change == "on"]
        else:
            rule = {"id": "soon", "effect": "ask", "tools": [tool], "when": [], "why": "soon", "expires": 3}
            content["rules"] = [r for r in content["rules"] if r["id"] != "soon"] + [rule]
        policies.publish(who, content, "because", current.number)

    def publish(self, content: Any) -> None:
        """The admin publishes a policy."""
        policies.publish(self.person("admin"), content, "because", Policy.objects.get(current=True).number)

    def _roles(self) -> None:
        """A person loses the right to decide, or gets it back."""
        someone, group = self.person("reviewer"), Group.objects.get(name="operator")
        if someone.groups.filter(pk=group.pk).exists():
            someone.groups.remove(group)
        else:
            someone.groups.add(group)

    # --- after the trouble --------------------------------------------------------------------------------------------
    def help(self, world: World) -> bool:
        """Do the next thing that waits for people, as people who look first would; False if nothing does."""
        self.person("reviewer").groups.add(Group.objects.get(name="operator"))
        reviewer = self.person("reviewer")
        for approval in Approval.objects.filter(run__in=world.runs, status="pending").order_by("pk"):
            if self._tried(approval.run_id, lambda a=approval: approvals.decide(a.pk, reviewer, "approve", a.digest)):
                return True
        for question in Question.objects.filter(run__in=world.runs, status="open").order_by("pk"):
            if self._tried(question.run_id, lambda q=question: questions.answer(q.pk, reviewer, "yes")):
                return True
        for run in (
            Run.objects.filter(pk__in=world.runs, due_at=None)
            .exclude(status__in=("succeeded", "failed", "cancelled"))
            .order_by("pk")
        ):
            if self._tried(run.pk, lambda run=run: self._unstick(world, run, reviewer)):
                return True
        return False

    def _tried(self, run: int, do: Any) -> bool:
        self.helped[run] = self.helped.get(run, 0) + 1
        try:
            do()
        except Refused as no:
            if self.helped[run] > 60:
                raise AssertionError(f"people cannot help run {run}: {no}") from no
            return False
        return True

    def _unstick(self, world: World, run: Run, who: User) -> None:
        state = run.picture
        if state.tampered:
            return acts.sign_off(run.pk, self.person("admin"), "looked")
        for ordinal in state.having("unknown"):
            call = Call.objects.get(run=run, turn=state.turn, ordinal=ordinal)
            happened = any(world.key_of(effect) == call.key for effect in world.remote.effects())
            return self.attest(call, who, "happened" if happened else "not_happened")
        if self.helped[run.pk] > 25:
            return acts.cancel(run.pk, who, "enough") if state.paused else acts.close_failed(run.pk, who, "enough")
        if state.stop and state.stop.reason in acts.BUDGETS:
            return self._extend(run.pk, who)
        return acts.resume(run.pk, who)
