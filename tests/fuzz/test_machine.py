"""The same world moved by hypothesis: it chooses who does what, and hands back the shortest history that fails.

Only its generate phase is used: the phase that explains a failure traces this whole program, and took for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.fuzz.clock import SECOND
from tests.fuzz.remote import FAULTS

pytestmark = pytest.mark.django_db
Scenario = Callable[..., AbstractContextManager[Any]]
AGENTS = ("medley", "refund", "two-effects", "asker", "messenger", "pickup-soon")


class Worlds(RuleBasedStateMachine):
    """The rules over one world; `judged` takes in every one that came to rest."""

    scenario: ClassVar[Scenario]
    judged: ClassVar[list[Any]]

    def __init__(self) -> None:
        super().__init__()
        self.after, self.world = ExitStack(), None

    @initialize(seed=st.integers(1, 10_000), agent=st.sampled_from(AGENTS))
    def start(self, seed: int, agent: str) -> None:
        self.world = self.after.enter_context(self.scenario(f"machine {seed}", agent=agent))
        self.world.troubled, self.world.stand_still = True, 0.0

    @rule(worker=st.integers(0, 3))
    def work(self, worker: int) -> None:
        if alive := self.world.alive():
            self.world.move(alive[worker % len(alive)])

    @rule(skew=st.sampled_from((0, 0, -90, 600)))
    def wake(self, skew: int) -> None:
        self.world.claim(self.world.runs[0], skew)

    @rule()
    def act(self) -> None:
        self.world.act()

    @rule()
    def look_again(self) -> None:
        self.world.look_again()

    @rule(seconds=st.sampled_from((0.01, 0.3, 1, 5, 70)))
    def wait(self, seconds: float) -> None:
        self.world.clock.advance(int(seconds * SECOND))

    @rule(seconds=st.sampled_from((0.5, 4, 40)))
    def freeze(self, seconds: float) -> None:
        for worker in self.world.alive()[:1]:
            worker.frozen_until = self.world.clock.now + int(seconds * SECOND)

    @rule(soon=st.integers(1, 6))
    def die_soon(self, soon: int) -> None:
        self.world.kill_at = self.world.passed + soon

    @rule(often=st.sampled_from((0.02, 0.3)))
    def stand_still(self, often: float) -> None:
        self.world.stand_still = often

    @precondition(lambda self: len(self.world.remote.script) < 3)
    @rule(fault=st.sampled_from(FAULTS))
    def misbehave(self, fault: str) -> None:
        self.world.remote.script.append(fault)

    @invariant()
    def holds(self) -> None:
        if self.world:
            self.world.look()
            assert self.world.wrong == []

    def teardown(self) -> None:
        """Heal, bring to rest, judge: also where the rules left off in the middle."""
        from tests.fuzz.oracle import Seen, judge

        with self.after:
            if self.world:
                self.world.remote.script = []
                assert self.world.heal(), "stuck"
                self.world.outlive()
                judge(self.world, Seen())
                self.judged.append(self.world)


def test_no_order_of_events_breaks_a_promise(scenario: Scenario) -> None:
    kind = type("World", (Worlds,), {"scenario": staticmethod(scenario), "judged": []})
    chosen = settings(
        max_examples=30, stateful_step_count=40, phases=[Phase.generate], derandomize=True, deadline=None,
        database=None, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(kind, settings=chosen)
    assert len(kind.judged) >= 30
    assert any(world.killed for world in kind.judged), "no worker ever died"
    assert any(world.counts["take-over"] for world in kind.judged), "no lease ever changed hands"
