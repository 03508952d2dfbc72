"""One promise at a time, in the world of the fuzz: short enough to be named where a mutant must be killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.django_db
Scenario = Callable[..., AbstractContextManager[Any]]


@contextmanager
def approved_refund(scenario: Scenario, name: str) -> Iterator[Any]:
    """A refund that a person has approved and no worker has begun."""
    from runs.actions import approvals
    from runs.models import Approval
    from tests.fuzz.corners import moving

    with scenario(name, agent="refund") as world:
        moving(world, lambda: Approval.objects.filter(run__in=world.runs, status="pending"))
        moving(world, lambda: not world.alive())
        asked = Approval.objects.get(run=world.runs[0])
        approvals.decide(asked.pk, world.people.person("reviewer"), "approve", asked.digest)
        yield world


def comes_to_rest(world: Any) -> None:
    from tests.fuzz.oracle import Seen, judge

    assert world.heal(600), "stuck"
    world.outlive()
    judge(world, Seen())


def starts(world: Any) -> list[dict[str, Any]]:
    from runs.models import Event

    found = Event.objects.filter(run__in=world.runs, kind="CallStarted").order_by("seq")
    return [json.loads(event.body) for event in found if event.turn == 2]


def test_no_byte_leaves_before_its_intent_is_committed(scenario: Scenario) -> None:
    from runs.journal import faultpoint
    from runs.runner import flights
    from tests.fuzz.world import Killed

    with approved_refund(scenario, "intent") as world:

        def dies(name: str) -> None:
            if name == "before_append" and world.mover:
                world.dying = True
                raise Killed(name)

        flights.AIR.eager, faultpoint.listener = True, dies  # type: ignore[attr-defined]
        world.move(world.claim(world.runs[0]))
        flights.AIR.eager, faultpoint.listener = False, world.point  # type: ignore[attr-defined]
        assert world.remote.effects() == [], "a worker that died before its commit had sent something"
        comes_to_rest(world)


def test_every_attempt_of_a_call_has_the_same_key(scenario: Scenario) -> None:
    with approved_refund(scenario, "key") as world:
        world.remote.script = ["throttle", "throttle"]
        comes_to_rest(world)
        begun = starts(world)
        assert [body["attempt"] for body in begun] == [1, 2, 3]
        assert len({body["key"] for body in begun}) == 1, "one call, one key"


def test_a_worker_whose_clock_is_slow_does_not_believe_in_a_lease_that_is_over(scenario: Scenario) -> None:
    from tests.fuzz.clock import SECOND

    with approved_refund(scenario, "clock") as world:
        worker = world.claim(world.runs[0], skew=-90)
        worker.grounded = True
        world.move(worker)
        assert starts(world) and worker.waiting, "the intent is committed, nothing has left"
        world.clock.advance(30 * SECOND)
        worker.grounded = False
        world.move(worker)
        assert world.remote.effects() == [], "it sent after its lease had ended"
        comes_to_rest(world)


def test_a_refusal_of_a_resend_says_nothing_about_the_first_request(scenario: Scenario) -> None:
    from runs.models import Call, Event

    with approved_refund(scenario, "refusal") as world:
        world.remote.script = ["cut", *["declines"] * 4]
        comes_to_rest(world)
        told = [json.loads(x.body) for x in Event.objects.filter(run__in=world.runs, kind="CallProbed").order_by("seq")]
        assert [b["verdict"] for b in told if b["phase"] == "told"] == ["inconclusive"] * 4
        assert Call.objects.filter(run__in=world.runs, tool="refund_order").earliest("turn").status == "not_executed"
