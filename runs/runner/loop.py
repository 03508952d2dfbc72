"""The loop: ask `next_step`, do it, append. A worker keeps nothing that is worth saving.

Facts in hand (what landed) are turned into a draft together with everything that follows from them, up to the next
thing that needs I/O, and written in one append: outcome k and intent k+1 share a commit. If others appended meanwhile
the draft is built again from the same facts.
"""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from runs.catalog import catalog
from runs.engine import events as e
from runs.engine import messages
from runs.engine.canonical import digest, operation_key, to_json
from runs.engine.limits import SECOND
from runs.engine.next_step import AskModel, Probe, Record, Start, Stop, Wait, next_step, stop_entry
from runs.engine.state import UnreadableState
from runs.engine.toolspec import Effect
from runs.journal import budgets, gate, lease
from runs.journal.append import Draft, LeaseLost, Picture, Stale, append
from runs.journal.faultpoint import faultpoint
from runs.journal.integrity import Tampered, check_head, plain, stop_run
from runs.journal.rows import RowMoved
from runs.models import Run
from runs.providers import UnknownModel, provider_for
from runs.runner import answers
from runs.runner.flights import Flight, ask_flight, call_flight
from runs.runner.transcript import Transcript
from runs.tools.host import HOST_TOOLS

log = logging.getLogger(__name__)
BEAT = 0.1
ASK_SECONDS = 120
SHIFT_SECONDS, SHIFT_TURNS = 30, 50


class UnknownTool(Exception):
    """A call that may have been sent is of a tool that this installation does not have."""


def advance(run_id: int) -> None:
    """Advance a run as far as it goes; returns at once if nobody needs to or another worker was first.

    A database that is away ends the shift with its error: the lease lapses, and the next holder goes on. Any other
    bug of ours stops the run for people to see, once, instead of killing worker after worker.
    """
    claimed = lease.claim(run_id)
    if claimed is None:
        return
    run, skew = claimed
    with stopping(run):
        runner = begin(run, skew)
        try:
            while runner.step():
                pass
        finally:
            runner.hand_in()


@contextmanager
def stopping(run: Run) -> Iterator[None]:
    """What goes wrong on a run that was claimed becomes a stop of that run, or is left to who comes next."""
    try:
        yield
    except LeaseLost:
        log.info("run %s: lease lost", run.pk)
    except (Tampered, RowMoved, messages.Vanished) as error:
        _stop(run, "integrity", str(error))
    except (UnknownModel, UnknownTool, e.UnknownEvent) as error:
        _stop(run, "unreadable", str(error))
    except UnreadableState as error:
        _leave(run, str(error))
    except DatabaseError:
        raise
    except Exception as error:
        reference = run.uid[:8]
        log.exception("run %s stopped by a bug, reference %s", run.pk, reference)
        _stop(run, "error", f"{type(error).__name__}, reference {reference}")


def begin(run: Run, skew: int) -> "Runner":
    """The runner of a claimed run. Raises `Tampered`, `UnknownModel` or `UnreadableState`."""
    opening = json.loads(check_head(run).payload or "")
    return Runner(run, Picture.of(run, mine=True), skew, opening)


def _stop(held: Run, reason: str, detail: str) -> None:
    """Record a stop and let go of the lease, if it is still ours."""
    run = Run.objects.get(pk=held.pk)
    if run.epoch == held.epoch and run.lease_until is not None:
        try:
            stop_run(run, reason, detail, mine=True)
        except (UnreadableState, e.UnknownEvent) as error:
            _leave(run, f"{detail}; {error}")


def _leave(run: Run, why: str) -> None:
    """Leave a run to newer code: what this code cannot read it cannot append to. Its page says so."""
    log.error("run %s is left alone: %s", run.pk, why)
    lease.put_back(run)


class Runner:
    """One shift on one run."""

    def __init__(self, run: Run, picture: Picture, skew: int, opening: dict[str, Any]) -> None:
        """`skew` makes this host's clock the database's; `opening` the recorded goal, inputs and facts."""
        definition = run.agent_version.definition
        self.picture = picture
        self.tools = [name for name in definition["tools"] if name in catalog().tools]
        self.model: str = opening.get("model") or definition["model"]
        self.provider = provider_for(self.model, catalog().scripts, settings.AGENTOPS_MODELS)
        self.agent = run.agent_version.agent_id
        self.over: Stop | None = None
        specs = [*(catalog().tools[name].spec for name in self.tools), *HOST_TOOLS.values()]
        listed = [{"name": s.name, "description": s.description, "input_schema": s.schema} for s in specs]
        self.transcript = Transcript(run, opening, listed)
        self.inputs = plain(opening["inputs"])
        self.facts = plain(opening["facts"])
        self.flying: dict[int, Flight] = {}
        self.landed: SimpleQueue[Flight] = SimpleQueue()
        self.in_hand: list[Flight] = []
        self.arguments: dict[tuple[int, int, int], str] = {}
        self.began, self.turns = time.monotonic(), 0
        self.skew = skew

    def step(self) -> bool:
        """Record what is in hand, decide, append, launch; False when the run waits or has ended."""
        draft = Draft(self.picture, self.now())
        for flight in self.in_hand:
            self._record(draft, flight)
        launches = self._decide(draft)
        parked = not launches and not self.flying
        try:
            if draft.entries or parked:
                self._append(draft, release=parked)
        except budgets.OverBudget as over:
            self.over = Stop("budget", str(over))
            return True
        except Stale:
            gate.current_policy(fresh=True)
            self._reload()
            return True
        self.in_hand = []
        for flight in launches:
            faultpoint({"ask": "after_ask", "run": "after_intent"}.get(flight.how, "after_probe"))
            self.flying[flight.ordinal] = flight
            flight.launch(self.landed)
        if not parked:
            self._wait()
        return not parked

    def now(self) -> int:
        """The database's time, in microseconds."""
        return lease.local() + self.skew

    def hand_in(self) -> None:
        """After the shift: add what effects found out that could not be recorded; those that fly get their time."""
        for flight in self.in_hand:
            self._late(flight)
        while effects := [f for f in self.flying.values() if f.effect and not f.overdue]:
            try:
                landed = self.landed.get(timeout=max(f.seconds_left() for f in effects) + BEAT)
            except Empty:
                for flight in effects:
                    flight.left_to = self._late_alone
                return
            self.flying.pop(landed.ordinal, None)
            self._late(landed)

    def _decide(self, draft: Draft) -> list[Flight]:
        """Follow `next_step` until it waits, or the shift is over; returns what to launch after the append."""
        launches: list[Flight] = []
        while True:
            held = frozenset(self.flying.keys() | {f.ordinal for f in launches})
            match next_step(draft.state, draft.now, held, draft.crashes):
                case Record(entries):
                    draft.put(*entries)
                case Stop() as stop:
                    draft.put(stop_entry(draft.state, stop))
                case AskModel() as ask:
                    if not launches and self._shift_over():
                        return []
                    if self.over:
                        draft.put(stop_entry(draft.state, self.over))
                        self.over = None
                        continue
                    launches.append(self._ask(draft, ask))
                case Start(ordinals):
                    launches += [f for o in ordinals if (f := self._start(draft, o))]
                case Probe(ordinal, how):
                    launches += [f] if (f := self._probe(draft, ordinal, how)) else []
                case Wait():
                    return launches

    def _ask(self, draft: Draft, ask: AskModel) -> Flight:
        self.transcript.load(self.picture)
        seconds = ASK_SECONDS * ask.longest // messages.ANSWER  # a longer answer takes longer
        deadline = draft.now + seconds * SECOND
        if ask.attempt > 1:
            draft.add(e.ModelAsked(ask.attempt, 0, deadline))
        else:
            self.turns += 1
            state = draft.state
            payload = to_json(self.transcript.next_message(draft, ask.new_segment))
            if ask.new_segment:
                reason = "bytes" if state.segment else "start"
                tools = self.transcript.tools_digest
                draft.add(e.SegmentStarted(state.segment + 1, reason, state.segment_bytes, tools))
            draft.add(e.ModelAsked(1, len(payload.encode()), deadline), turn=state.turn + 1, payload=payload)
        if getattr(self.provider, "billed", True):
            size = draft.state.segment_bytes + self.transcript.overhead
            known = self.model, self.agent, size, ask.longest
            draft.money.append(budgets.reserve(draft.state, draft.now, *known))
        return ask_flight(self.provider, partial(self.transcript.request, ask.longest), seconds)

    def _start(self, draft: Draft, ordinal: int) -> Flight | None:
        args = self._arguments(draft, ordinal)
        via = gate.admit(draft, ordinal, args)
        if not via:
            return None
        call, turn = draft.state.calls[ordinal], draft.state.turn
        tool = catalog().tools[call.tool]
        key = call.key or operation_key(self.picture.uid, turn, ordinal, call.revision, call.definition, args)
        half = int(tool.spec.retention / 2 * SECOND) if tool.spec.effect == Effect.KEYED else 0
        deadline = draft.now + int(tool.spec.deadline * SECOND)
        fact = e.CallStarted(
            key, call.attempt + 1, deadline, via, request=call.args, look_up=tool.look_up is not None,
            resend_until=(call.started or draft.now) + half if half else 0,
        )  # fmt: skip
        draft.add(fact, call=ordinal)
        return self._flight(draft, ordinal, "run", args, key)

    def _probe(self, draft: Draft, ordinal: int, how: str) -> Flight | None:
        args = self._arguments(draft, ordinal)
        call = draft.state.calls[ordinal]
        if digest(args) != call.args:
            raise Tampered(f"the stored arguments of call {ordinal} were changed")
        number = call.probes + 1
        draft.add(e.CallProbed(number, how, "asked"), call=ordinal)
        if how == "resend" and not gate.may_resend(draft, ordinal, args):
            due = draft.state.limits.probe_due(draft.now, number)
            draft.add(e.CallProbed(number, how, "told", "inconclusive", due), call=ordinal)
            return None
        return self._flight(draft, ordinal, how, args, call.key)

    def _flight(self, draft: Draft, ordinal: int, how: str, args: str, key: str) -> Flight:
        call = draft.state.calls[ordinal]
        if call.tool not in catalog().tools:
            raise UnknownTool(f"the tool {call.tool} is not installed here")
        flight = call_flight(catalog().tools[call.tool], how, args, key, self.facts, self._may_send)
        return replace(flight, ordinal=ordinal, turn=draft.state.turn, revision=call.revision)

    def _may_send(self) -> bool:
        return self.picture.lease_until is not None and self.now() < self.picture.lease_until

    def _arguments(self, draft: Draft, ordinal: int) -> str:
        """Canonical arguments: from this draft or memory while the call was never asked about, else as stored."""
        call, turn = draft.state.calls[ordinal], draft.state.turn
        place = (turn, ordinal, call.revision)
        for entry in draft.entries:
            if isinstance(entry.fact, e.CallJudged) and entry.payload:
                self.arguments[entry.turn, entry.ordinal, entry.revision] = entry.payload
        if place not in self.arguments or call.approval:
            self.arguments[place] = gate.stored_arguments(self.picture.run, turn, ordinal)
        return self.arguments[place]

    def _record(self, draft: Draft, flight: Flight) -> None:
        if flight.how == "ask":
            if draft.state.ask and not draft.state.ask.why:
                if getattr(self.provider, "billed", True):
                    answers.settle(draft, flight.result)
                answers.record_answer(draft, flight, self.transcript.labels, self.tools)
            return
        record = answers.record_outcome if flight.how == "run" else answers.record_probe
        record(draft, flight, self.inputs)

    def _late(self, flight: Flight) -> None:
        """Keep what an effect came to although nobody waits for it any more."""
        if flight.effect and flight.how != "lookup":
            answers.add_late(self.picture.run, flight)

    def _late_alone(self, flight: Flight) -> None:
        """As `_late`, from the thread of a flight that was left behind."""
        try:
            self._late(flight)
        finally:
            connection.close()

    def _append(self, draft: Draft, release: bool) -> None:
        old = self.picture
        self.picture = append(draft, release=release)
        self.transcript.follow(old, draft, self.picture)
        if any(isinstance(x.fact, e.CallEnded) for x in draft.entries):
            faultpoint("after_outcome")
        if draft.state.turn != old.state.turn:
            self.arguments = {}

    def _wait(self) -> None:
        """Wait for the first landing or a beat, then look whether others appended and what must be aborted."""
        try:
            self._land(self.landed.get(timeout=BEAT))
            while True:
                self._land(self.landed.get_nowait())
        except Empty:
            pass
        if not self.in_hand:
            self._beat()

    def _land(self, flight: Flight) -> None:
        if self.flying.get(flight.ordinal) is flight:
            del self.flying[flight.ordinal]
            self.in_hand.append(flight)
        else:
            self._late(flight)

    def _beat(self) -> None:
        seq, until, self.skew = lease.beat(self.picture)
        if until is None:
            raise LeaseLost(f"run {self.picture.run}")
        self.picture = replace(self.picture, lease_until=until)
        if seq != self.picture.seq:
            self._reload()
        for ordinal, flight in list(self.flying.items()):
            if self.picture.state.cancel:
                flight.cancelled.set()  # whoever cannot be aborted without leaving a doubt does not look
            if flight.overdue:
                flight.left_to = self._late_alone
                del self.flying[ordinal]

    def _reload(self) -> None:
        """Take the current row, if the lease is still ours, and the tail of events."""
        run = Run.objects.get(pk=self.picture.run)
        if run.epoch != self.picture.epoch or run.lease_until is None:
            raise LeaseLost(f"run {run.pk}")
        check_head(run)
        self.picture, self.arguments = Picture.of(run, mine=True), {}  # a draft that was dropped leaves no arguments
        if self.transcript.seq is not None:
            self.transcript.load(self.picture)

    def _shift_over(self) -> bool:
        """After a while the run goes to the back of the queue, if others wait; if none do, a new shift begins."""
        if time.monotonic() - self.began <= SHIFT_SECONDS and self.turns < SHIFT_TURNS:
            return False
        self.began, self.turns = time.monotonic(), 0
        return bool(lease.due(1))
