"""Small builders: a call, a state, a tool; and a run played in memory by a capricious world."""

import random
from typing import Any

from runs.engine import events as e
from runs.engine import next_step as n
from runs.engine.evolve import evolve
from runs.engine.limits import SECOND
from runs.engine.state import CallState, RunState

NOW = 1_000 * SECOND


def call(status: str = "ready", effect: str = "read", **fields: Any) -> CallState:
    """A call; `obj` names the one object that it touches."""
    objects = [fields.pop("obj")] if "obj" in fields else []
    return CallState(status=status, effect=effect, tool=fields.pop("tool", effect), objects=objects, **fields)


def pending(effect: str = "keyed", **fields: Any) -> CallState:
    return call("waiting", effect, approval=1, approval_status="pending", **fields)


def run(*calls: CallState, **fields: Any) -> RunState:
    """A run in its first turn with these calls."""
    fields = {"turn": 1, "segment": 1, **fields}
    return RunState(calls=dict(enumerate(calls, 1)), **fields)


def apply(state: RunState, fact: e.Fact, ordinal: int = 0, **header: Any) -> RunState:
    revision = state.calls[ordinal].revision if ordinal in state.calls else 1
    header = {"turn": state.turn, "revision": revision, "t": NOW, "epoch": 1, **header}
    return evolve(state, e.Entry(fact=fact, ordinal=ordinal, **header))[0]


TOOLS = {  # name -> effect, object
    "look": ("read", "a"), "peek": ("read", "b"), "write": ("repeatable", "a"), "pay": ("keyed", "a"),
    "find": ("lookup", "b"), "mail": ("opaque", "b"), "note": ("opaque", ""),
}  # fmt: skip


class Play:
    """A run, what is in the air, and a record of everything; `random` decides what happens."""

    def __init__(self, seed: random.Random) -> None:
        self.random, self.state, self.now, self.held, self.crashes = seed, RunState(), NOW, set[int](), 0
        self.entries: list[e.Entry] = []
        self.verdicts: dict[tuple[int, int], str] = {}
        self.put(e.RunStarted("a v1", "goal", {}, [], 1, False, 1))

    def put(self, fact: e.Fact, ordinal: int = 0, **header: Any) -> None:
        old = self.state.calls.get(ordinal)
        header = {"turn": self.state.turn, "revision": old.revision if old else 1, "epoch": 1, "t": self.now, **header}
        self.keep(e.Entry(fact=fact, ordinal=ordinal, **header))

    def keep(self, entry: e.Entry) -> None:
        entry = e.Entry(**{**vars(entry), "seq": len(self.entries) + 1, "t": self.now})
        self.state, _ = evolve(self.state, entry)
        self.entries.append(entry)
        if isinstance(entry.fact, e.CallJudged):
            self.verdicts[entry.turn, entry.ordinal] = entry.fact.verdict
        elif isinstance(entry.fact, e.Decided) and entry.fact.vote == "approve":
            self.verdicts[entry.turn, entry.ordinal] = "approved"
        elif isinstance(entry.fact, e.CallSettled) and entry.fact.to == "ready":
            self.verdicts[entry.turn, entry.ordinal] = "again"  # the gate is run again at the start

    def step(self) -> n.Step:
        return n.next_step(self.state, self.now, frozenset(self.held), self.crashes)

    # --- what the runner does with a step

    def obey(self, step: n.Step) -> None:
        match step:
            case n.Record(entries):
                for entry in entries:
                    self.keep(entry)
            case n.Stop() as stop:
                self.keep(n.stop_entry(self.state, stop))
            case n.AskModel(attempt, new_segment):
                if new_segment:
                    self.put(e.SegmentStarted(self.state.segment + 1, "start", 0, "t"))
                self.put(e.ModelAsked(attempt, 100, 0), turn=self.state.turn + (attempt == 1))
                self.held.add(n.ASK)
            case n.Start(ordinals):
                for ordinal in ordinals:
                    self.admit(ordinal)
            case n.Probe(ordinal, how):
                self.put(e.CallProbed(self.state.calls[ordinal].probes + 1, how, "asked"), ordinal)
                self.held.add(ordinal)
            case n.Wait(until, _):
                self.now = max(self.now + 1, until or 0)

    def admit(self, ordinal: int) -> None:
        """The gate lets it through, or has changed its mind."""
        old = self.state.calls[ordinal]
        if self.random.random() < 0.15:
            if old.approval_status == "approved":
                self.put(e.ApprovalClosed(old.approval, "superseded"), ordinal)
            self.judge(ordinal, old.tool, self.random.choice(("ask", "deny")))
            return
        how = {"approved": "approval", "consumed": "again"}.get(old.approval_status, "allow")
        self.put(
            e.CallStarted(
                old.key or f"key-{self.state.turn}-{ordinal}", old.attempt + 1, self.now + 30 * SECOND, how,
                resend_until=self.now + 99 * SECOND if old.effect == "keyed" else 0, look_up=old.effect == "lookup",
            ),
            ordinal,
        )  # fmt: skip
        self.held.add(ordinal)

    def judge(self, ordinal: int, tool: str, verdict: str) -> None:
        effect, key = TOOLS[tool]
        objects = [key] if key else []
        self.put(e.CallJudged(f"l{ordinal}", tool, f"{tool}@1", effect, "digest", objects, verdict), ordinal)
        if verdict == "ask":
            expires = self.now + 60 * SECOND if self.random.random() < 0.3 else 0
            self.put(e.ApprovalRequested(self.state.calls[ordinal].approval + 1, "d", "r", [], expires), ordinal)

    # --- what lands

    def land(self) -> None:
        ordinal = self.random.choice(sorted(self.held))
        self.held.discard(ordinal)
        if ordinal == n.ASK:
            if self.state.ask and not self.state.ask.why:
                self.answer()
            return
        old = self.state.calls[ordinal]
        if old.status == "executing":
            outcome = self.random.choice(("ok", "ok", "declined", "fatal", "retryable", "unknown"))
            due = self.now + self.random.choice((0, 5 * SECOND)) if outcome == "retryable" else 0
            self.put(e.CallEnded(outcome, observation=f"{outcome}-{self.now}", ms=5, retry_at=due), ordinal)
        elif old.probing:
            verdict = self.random.choice(("found", "not_found", "inconclusive"))
            due = self.state.limits.probe_due(self.now, old.probes)
            self.put(e.CallProbed(old.probes, old.probing, "told", verdict, due), ordinal)
            if verdict == "found":
                self.put(e.CallSettled("done", old.probing, outcome="ok", observation="found"), ordinal)

    def answer(self) -> None:
        roll = self.random.random()
        if roll < 0.1:
            reason = self.random.choice(("429", "malformed:x", "refusal", "auth"))
            self.put(e.ModelFailed(reason, self.now + self.random.choice((0, 4 * SECOND)), 5))
            return
        self.put(e.ModelAnswered("tool_use", 10, 100, 1, 5))
        if self.state.cancel:
            return
        if roll < 0.2:
            self.put(e.FinishRefused(["evidence"], True))
        elif roll < 0.35:
            self.host(self.random.choice(("ask_user", "give_up", "finish", "denied")))
        else:
            for ordinal in range(1, self.random.randint(1, 4) + 1):
                self.judge(
                    ordinal, self.random.choice(list(TOOLS)), self.random.choice(("allow", "allow", "ask", "deny"))
                )

    def host(self, name: str) -> None:
        verdict = "deny" if name == "denied" else "allow"
        tool = "ask_user" if name == "denied" else name
        self.put(e.CallJudged("h", tool, f"{tool}@1", "host", verdict=verdict), 1)
        if name == "ask_user":
            self.put(e.QuestionAsked("?", {}), 1)
        elif name == "finish":
            self.put(e.FinishRefused(["evidence"], True, "o"), 1)

    # --- what people and accidents do

    def crash(self) -> None:
        self.held.clear()
        self.crashes += 1

    def person(self) -> None:
        self.random.choice((self.vote, self.attest, self.pause, self.resume, self.note, self.late, self.cancel))()

    def note(self) -> None:
        self.put(e.NoteAdded("hm"), person=1)

    def pause(self) -> None:
        if not self.state.end:
            self.put(e.PauseAsked(), person=1)

    def resume(self) -> None:
        stop = self.state.stop
        if not self.state.end and (stop or self.state.paused) and not (stop and stop.reason == "unknown_effect"):
            if stop and stop.reason in ("turns", "calls", "time"):
                more = {name: getattr(self.state.limits, name) * 2 for name in ("turns", "calls", "ms")}
                self.put(e.LimitsChanged(more), person=1)
            else:
                self.put(e.Resumed(), person=1)
            self.crashes = 0

    def vote(self) -> None:
        for ordinal, old in self.state.having("waiting").items():
            if self.state.end:
                return
            if old.question:
                self.put(e.QuestionAnswered("black", "o"), ordinal, person=1)
            elif old.pending:
                self.put(e.Decided(old.approval, "d", self.random.choice(("approve", "reject"))), ordinal, person=1)
            self.crashes = 0

    def attest(self) -> None:
        for ordinal, old in self.state.having("unknown").items():
            if old.probing or old.late or self.state.end:
                continue
            to = self.random.choice(("done", "not_executed", "ready"))
            if to == "ready" and self.state.cancel:
                continue
            self.put(e.CallSettled(to, "human", outcome="ok" if to == "done" else ""), ordinal, person=1)
            self.crashes = 0

    def late(self) -> None:
        for ordinal, old in self.state.calls.items():
            if old.key and old.maybe_sent:
                self.put(e.LateEvidence("ok", old.key, observation="late"), ordinal)

    def cancel(self) -> None:
        if self.random.random() < 0.3 and not self.state.end and not self.state.cancel:
            for ordinal, old in self.state.having("waiting", "ready").items():
                if old.approval_status in ("pending", "approved"):
                    self.put(e.ApprovalClosed(old.approval, "withdrawn"), ordinal)
            self.put(e.CancelAsked(), person=1)
