"""What a turn costs, and whether it stays the same however long the run is."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import mean

from bench import databases
from bench.report import Result, result

SHORT, LONG, MIDDLE = 20, 120, 200


def queries_per_turn(turns: int, rounds: int) -> Iterator[Result]:
    """Commits and queries of a turn with one call, start and end of the run taken out by two lengths.

    The peer is what is physically needed: two commits for a call with an effect, a statement for each. One read in 50
    turns, whether others wait for the worker, is counted and does not fail a goal.
    """
    for kind in databases.kinds():
        short, long = databases.run(kind, str(SHORT), str(LONG))
        for what, goal, stretch in (("commits", 2, 2), ("queries", 6, 3)):
            ours = round((long[what] - short[what]) / (LONG - SHORT), 1)
            yield result(
                "queries_per_turn", kind, what=what, unit=f"{what}/turn", ours=[ours], peer=[2], goal=goal,
                stretch=stretch, bound="ours",
            )  # fmt: skip


def cost_flatness_5000(turns: int, rounds: int) -> Iterator[Result]:
    """Cost of the last 500 turns over that of turns 10 to 510, the databases taken in turns; medians.

    Three times: all that passes; without what the scripted model spends on checking the conversation it is sent, which
    stands for a remote; and of that the processor time of our process, which busy neighbours on the machine do not
    change (waiting for the disk and, on PostgreSQL, the server's work are not in it).
    """
    kinds = databases.kinds()
    taken: dict[str, list[Result]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            taken[kind] += databases.run(kind, str(turns))
    for kind in kinds:
        for what, clock, model in (("turn", 0, True), ("turn without model", 0, False), ("processor", 1, False)):
            costs = [per_turn(run, clock, model) for run in taken[kind]]
            yield _flatness(kind, what, costs, turns, taken[kind][0]["state_bytes"])


def loop_efficiency(turns: int, rounds: int) -> Iterator[Result]:
    """Turns a second of a whole run with a model that answers at once, over those of the floor right after each run."""
    for kind in databases.kinds():
        runs = databases.run(kind, "--bare", "--floor", str(SHORT), *[str(MIDDLE)] * rounds)[1:]
        yield result(
            "loop_efficiency", kind, what=f"{MIDDLE} turns", unit="turns/s", goal=0.4, stretch=0.6,
            ours=[MIDDLE / run["seconds"] for run in runs], peer=[MIDDLE / run["floor"] for run in runs],
        )  # fmt: skip


def _flatness(kind: str, what: str, costs: list[list[float]], turns: int, state_bytes: int) -> Result:
    early, late = [1000 * mean(cost[10:510]) for cost in costs], [1000 * mean(cost[-500:]) for cost in costs]
    return result(
        "cost_flatness_5000", kind, what=what, unit="ms/turn", ours=late, peer=early, goal=1.25, stretch=1.10,
        turns=turns, turns_per_second=[round(len(cost) / sum(cost)) for cost in costs], state_bytes=state_bytes,
    )  # fmt: skip


def per_turn(run: Result, clock: int, model: bool) -> list[float]:
    """Seconds of each turn, from one question to the model to the next: wall (clock 0) or processor (clock 1)."""
    marks, provider = [mark[clock] for mark in run["marks"]], [spent[clock] for spent in run["provider"]]
    whole = [after - before for before, after in pairwise(marks)]
    return whole if model else [cost - spent for cost, spent in zip(whole, provider, strict=False)]
