"""Whatever happens in whatever order: there is a next step, it is safe, and no wait is without a way out."""

import random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from runs.engine import next_step as n
from runs.engine.evolve import fold
from runs.engine.state import RunState, dumps, loads
from tests.engine.making import Play

LONG = settings(
    max_examples=250, deadline=None, phases=(Phase.explicit, Phase.generate), derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
seeds = st.integers(0, 2**32)


def play(seed: int, moves: int = 90) -> Play:
    """A run through many moves, each step judged before it is obeyed."""
    world = Play(random.Random(seed))
    for _ in range(moves):
        step = world.step()
        judge(world, step)
        roll = world.random.random()
        if roll < 0.03:
            world.crash()
        elif roll < 0.15:
            world.person()
        elif world.held and (roll < 0.6 or isinstance(step, n.Wait)):
            world.land()
        else:
            world.obey(step)
    return world


def judge(world: Play, step: n.Step) -> None:
    """What must be true of a step, whatever led to it."""
    s, flying = world.state, bool(world.held)
    if isinstance(step, n.Start):
        assert not (s.cancel or s.paused or s.stop or s.end)
        starts(world, step)
    elif isinstance(step, n.AskModel):
        assert not (s.cancel or s.paused or s.stop or s.end or flying)
        assert all(call.ended for call in s.calls.values())
        assert s.ask is None or (s.ask.why and s.ask.tries < s.limits.asks)
    elif isinstance(step, n.Probe):
        call = s.calls[step.ordinal]
        assert call.status == "unknown" and not call.probing and not s.end and (s.cancel or not s.paused)
        assert step.how == "lookup" or not s.cancel
    elif isinstance(step, n.Record):
        assert step.entries
    elif isinstance(step, n.Wait):
        way_out(s, step, flying, world.now)


def starts(world: Play, step: n.Start) -> None:
    calls = world.state.calls
    chosen = [calls[o] for o in step.ordinals]
    airborne = [c for c in calls.values() if c.status in ("executing", "unknown")]
    assert sum(c.has_effect for c in [*chosen, *airborne]) <= 1 or not any(c.has_effect for c in chosen)
    for ordinal in step.ordinals:
        call = calls[ordinal]
        assert call.status == "ready" and call.due <= world.now and ordinal not in world.held and not call.late
        assert world.verdicts[world.state.turn, ordinal] in ("allow", "approved", "again")
        assert call.approval_status != "pending"
        for other, rival in calls.items():
            near = set(call.objects) & set(rival.objects) and (call.has_effect or rival.has_effect)
            if other != ordinal and near:
                assert rival.status != "executing" and other not in step.ordinals
                assert other > ordinal or rival.ended


def way_out(s: RunState, step: n.Wait, flying: bool, now: int) -> None:
    if step.until is not None:
        assert step.until > now
        return
    assert not flying
    asked = any(c.pending or (c.status == "waiting" and c.question) for c in s.calls.values())
    assert s.end or s.stop or s.paused or asked


class TestAnyHistory:
    @LONG
    @given(seeds)
    def test_has_a_safe_next_step_and_a_way_out(self, seed: int) -> None:
        play(seed)

    @LONG
    @given(seeds)
    def test_folds_to_the_same_state_and_is_stored_without_loss(self, seed: int) -> None:
        world = play(seed, 40)
        assert fold(world.entries) == world.state == fold(world.entries)
        assert loads(dumps(world.state)) == world.state
        assert dumps(loads(dumps(world.state))) == dumps(world.state)

    @LONG
    @given(seeds)
    def test_records_come_to_an_end_at_once(self, seed: int) -> None:
        world = play(seed, 40)
        world.held.clear()
        for _ in range(6):
            if not isinstance(step := world.step(), n.Record | n.Stop):
                return
            world.obey(step)
        raise AssertionError(f"still {step}")

    @LONG
    @given(seeds)
    def test_ends_when_it_is_cancelled_and_people_attest_what_is_in_doubt(self, seed: int) -> None:
        world = play(seed, 40)
        if not world.state.end and not world.state.cancel:
            world.random.random = lambda: 0.0  # the person does cancel
            world.cancel()
            world.random = random.Random(seed)
        for _ in range(200):
            if world.state.end:
                return
            step = world.step()
            if world.held:
                world.land()
            elif isinstance(step, n.Wait) and step.until is None:
                world.attest()
            else:
                world.obey(step)
        raise AssertionError(f"never ended: {world.step()} {world.state}")
