"""Look again for what was presumed not executed: that verdict is a bet on time (reliability.md 2.4 d).

A watch holds no lease and moves no run. It only looks up, and what it finds is late evidence. `Call.watch_at` stands
outside of the run's state, because a look is due after the run has ended too.
"""

import json
import logging
from dataclasses import replace
from queue import Empty, SimpleQueue

from django.conf import settings

from runs.audit import safe_mode
from runs.catalog import catalog
from runs.engine.canonical import digest
from runs.engine.limits import SECOND
from runs.journal import lease
from runs.journal.integrity import Tampered, check_head, plain
from runs.models import Call, Event
from runs.runner import answers
from runs.runner.flights import GRACE, Flight, call_flight
from runs.tools.base import Kind, Outcome, Tool

log = logging.getLogger(__name__)
MARGIN = 60  # seconds after which a look whose worker died is taken up by another


def watch(run: int, turn: int, ordinal: int) -> None:
    """Take the look that is due at a call, if it is; several at once are one. Nothing is sent but the look-up."""
    clock = lease.now()
    place = {"run": run, "turn": turn, "ordinal": ordinal}
    call = Call.objects.filter(**place, status="not_executed", watch_at__lte=clock).first()
    if call is None or safe_mode.in_force():
        return
    tool = catalog().tools.get(call.tool)
    hold = clock + int(((tool.spec.deadline if tool else 0) + MARGIN) * SECOND)
    if not Call.objects.filter(**place, watch_at=call.watch_at).update(watch_at=hold):
        return
    flight, after = _look(call, tool), None
    if flight.result.kind == Kind.OK:
        answers.add_late(run, flight)
    else:
        absent = flight.result.kind == Kind.DECLINED
        said = "still not found" if absent else f"the look told nothing: {flight.result.status}"
        log.warning("run %s call %s.%s: %s, %s", run, turn, ordinal, call.tool, said)
        after = next_look(call, lease.now(), told=absent)
    Call.objects.filter(**place, watch_at=hold).update(watch_at=after)


def next_look(call: Call, now: int, told: bool = True) -> int | None:
    """When to look the next time, counted from the verdict; None after the last.

    A look that told nothing does not count: it is made up for, until twice the time of the last one.
    """
    verdict, delays = call.ended_at or 0, [int(delay * SECOND) for delay in settings.AGENTOPS_WATCH]
    made_up = [now + max(delays[0], SECOND)] if not told and now < verdict + 2 * delays[-1] else []
    return min((at for at in [verdict + delay for delay in delays] + made_up if at > now), default=None)


def _look(call: Call, tool: Tool | None) -> Flight:
    """Ask the remote for the mark of a call: key, arguments and facts as the record has them."""
    nothing = Flight(call.ordinal, "lookup", lambda flight: None, 0)
    if tool is None or tool.look_up is None:
        return replace(nothing, result=Outcome(kind=Kind.UNKNOWN, status="nothing here can look it up"))
    try:
        opening = json.loads(check_head(call.run).payload or "{}")
        started = Event.objects.filter(run=call.run, turn=call.turn, ordinal=call.ordinal, kind="CallStarted")
        sent = json.loads(started.latest("seq").body)
        if (sent["key"], sent["request"]) != (call.key, digest(call.arguments)):
            raise Tampered("the key or the arguments of the call were changed")
    except Tampered as error:
        return replace(nothing, result=Outcome(kind=Kind.UNKNOWN, status=f"the record is damaged: {error}"))
    flight = call_flight(tool, "lookup", call.arguments, call.key or "", plain(opening["facts"]), lambda: True)
    flight = replace(flight, ordinal=call.ordinal, turn=call.turn, revision=call.revision)
    landed: SimpleQueue[Flight] = SimpleQueue()
    flight.launch(landed)
    try:
        return landed.get(timeout=flight.seconds + GRACE)
    except Empty:
        flight.left_to = lambda flight: None
        return replace(nothing, result=Outcome(kind=Kind.UNKNOWN, status="no answer in time"))
