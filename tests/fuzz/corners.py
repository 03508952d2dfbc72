"""What chance alone rarely meets, played step by step in the same world and judged by the same oracle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from runs.actions import approvals
from runs.actions import runs as acts
from runs.actions.acting import Refused
from runs.engine.state import CallState
from runs.journal import lease
from runs.models import Approval, Call, Event, Incident, Policy, Run
from tests.fuzz.clock import SECOND
from tests.fuzz.world import World


def work(world: World, until: Callable[[], object]) -> None:
    """Workers and looks, until something is true; people approve what is asked."""
    for _ in range(400):
        if until():
            return
        for run in lease.due():
            world.claim(run)
        for worker in world.alive():
            world.move(worker)
        for asked in Approval.objects.filter(run__in=world.runs, status="pending"):
            approvals.decide(asked.pk, world.people.person("reviewer"), "approve", asked.digest)
        if not lease.due() and not world.alive():
            world.clock.advance(SECOND // 4)
    raise AssertionError("it never came to that")


def moving(world: World, until: Callable[[], object], wait: int = 0) -> None:
    """One worker at a time, step by step, until something is true; nobody approves."""
    for _ in range(300):
        if until():
            return
        for run in lease.due() if not world.alive() else ():
            world.claim(run)
        for worker in world.alive()[:1]:
            world.move(worker)
        world.clock.advance(wait or 1000)
    raise AssertionError("it never came to that")


def calls(world: World, status: str) -> list[CallState]:
    return [c for c in Run.objects.get(pk=world.runs[0]).picture.calls.values() if c.status == status]


def _in_doubt(world: World) -> Call:
    """A message that was cut, of which a person says: do it again."""
    world.remote.kinds, world.remote.path, world.remote.rate = ("cut",), "/messages", 1.0
    work(world, lambda: calls(world, "unknown"))
    call = Call.objects.get(run=world.runs[0], status="unknown")
    world.people.attest(call, world.people.person("reviewer"), "again")
    assert calls(world, "ready")[0].maybe_sent
    with contextlib.suppress(Refused):
        world.people.attest(call, world.people.person("operator"), "happened")
        raise AssertionError("two people said what became of one call")
    world.people.attested[call.run_id, call.turn, call.ordinal] = "again"
    world.people.did["attest", 409] += 1
    return call


def sent_again_under_its_key(world: World) -> None:
    """A refund whose reply is lost is settled by the same request under the same key."""
    world.remote.script = ["reply_lost"]
    work(world, lambda: Run.objects.get(pk=world.runs[0]).picture.end)
    settled = Event.objects.filter(run=world.runs[0], kind="CallSettled").values_list("body", flat=True)
    assert any('"resend"' in body for body in settled)


def again_and_then_cancelled(world: World) -> None:
    """What is to be sent again and is cancelled is in doubt, not withdrawn."""
    _in_doubt(world)
    acts.cancel(world.runs[0], world.people.person("operator"), "not again")
    assert calls(world, "unknown")


def again_and_then_refused(world: World) -> None:
    """What is to be sent again, is asked anew by a stricter policy and refused, is in doubt, not refused."""
    _in_doubt(world)
    world.people.four_eyes()
    moving(world, lambda: calls(world, "waiting"))
    asked = Approval.objects.get(run=world.runs[0], status="pending")
    approvals.decide(asked.pk, world.people.person("reviewer"), "reject", asked.digest)
    assert calls(world, "unknown")


def found_after_all(world: World) -> None:
    """A pickup that is presumed not booked, and lands while its sibling waits, is settled by the look at it."""
    world.remote.kinds, world.remote.path, world.remote.rate = ("late",), "/pickups", 1.0
    world.remote.late = (2.5,)
    moving(world, lambda: Approval.objects.filter(run__in=world.runs, status="pending").count() == 2)
    asked = Approval.objects.filter(run__in=world.runs).earliest("pk")
    approvals.decide(asked.pk, world.people.person("reviewer"), "approve", asked.digest)
    moving(world, lambda: calls(world, "not_executed"), SECOND // 20)
    world.clock.advance(4 * SECOND)
    world.look_again()
    assert any(c.late for c in calls(world, "not_executed")), "in the same turn"
    incident = Incident.objects.get(run=world.runs[0])
    acts.close_incident(incident.pk, world.people.person("operator"), "The carrier has it.")
    world.people.did["close_incident", 200] += 1


def put_right_and_signed_off(world: World) -> None:
    """A row that somebody wrote beside the journal is put right from the record, and an admin signs off."""
    moving(world, lambda: Approval.objects.filter(run__in=world.runs, status="pending"))
    moving(world, lambda: not world.alive())
    world.people.tamper(world.runs[0])
    with contextlib.suppress(Refused):
        acts.pause(world.runs[0], world.people.person("operator"))
    acts.sign_off(world.runs[0], world.people.person("admin"), "I looked.")
    world.people.did["sign_off", 200] += 1


def switched_off(world: World) -> None:
    """A tool that is switched off between the decision and the start is denied."""
    work(world, lambda: Approval.objects.filter(run__in=world.runs, status="approved"))
    current = Policy.objects.get(current=True)
    world.people.publish(current.content | {"off": ["send_message"]})
    moving(world, lambda: Call.objects.filter(run__in=world.runs, status="denied"))


LIMITED: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("repeats", "repeater", {}), ("claims", "text-end", {}), ("refused", "misbehave-refusal", {}),
    ("give_up", "quitter", {}), ("calls", "repeater", {"calls": 1}), ("turns", "repeater", {"turns": 1}),
    ("time", "repeater", {"ms": 300}), ("failures", "misbehave-invalid_arguments", {"failures": 1}),
    ("refusals", "refund", {"refusals": 1}),
)  # fmt: skip


def each_limit_is_reached(world: World) -> None:
    """A run for each reason to stop that a model, or people, can bring about."""
    world.remote.kinds, world.remote.rate = ("slow",), 1.0
    for reason, agent, limits in LIMITED:
        run = world.people.start(agent, "O-5001", world.seed, limits=limits)
        world.runs.insert(0, run)

        def stopped(run: int = run) -> bool:
            asked = Approval.objects.filter(run=run, status="pending").first()
            if asked:
                approvals.decide(asked.pk, world.people.person("reviewer"), "reject", asked.digest)
            return Run.objects.get(pk=run).picture.stop is not None

        moving(world, stopped, SECOND // 4)
        stop = Run.objects.get(pk=run).picture.stop
        assert stop is not None and stop.reason == reason, (agent, stop)
        acts.close_failed(run, world.people.person("reviewer"), "seen")
        world.people.did["close_failed", 200] += 1


CORNERS = {
    each_limit_is_reached: "quitter", sent_again_under_its_key: "refund",
    again_and_then_cancelled: "messenger", again_and_then_refused: "messenger", found_after_all: "two-effects",
    switched_off: "messenger", put_right_and_signed_off: "messenger",
}  # fmt: skip
