"""What a turn costs, and whether it stays the same however long the run is."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import mean, median
from typing import Any

from bench import databases

Result = dict[str, Any]
SHORT, LONG, MIDDLE = 20, 120, 200


def result(name: str, kind: str, *, measured: float, **fields: Any) -> Result:
    """The form of every report; `measured` is what goal and stretch bound, from below where more is better."""
    sign = 1 if fields["stretch"] <= fields["goal"] else -1
    met = [level for level in ("stretch", "goal") if sign * measured <= sign * fields[level]]
    reached = met[0] if met else "missed"
    return {"bench": name, "database": kind, **fields, "reached": reached, "versions": databases.versions(kind)}


def queries_per_turn(turns: int, rounds: int) -> Iterator[Result]:
    """Commits and queries of a turn with one call, start and end of the run taken out by two lengths.

    The peer is what is physically needed: two commits for a call with an effect, a statement for each. One read in 50
    turns, whether others wait for the worker, is counted and does not fail a goal.
    """
    for kind in databases.kinds():
        short, long = databases.run(kind, str(SHORT), str(LONG))
        for what, goal, stretch in (("commits", 2, 2), ("queries", 6, 3)):
            ours = round((long[what] - short[what]) / (LONG - SHORT), 2)
            yield result(
                "queries_per_turn", kind, what=what, goal=goal, stretch=stretch, ours=ours, peer=2, ratio=ours / 2,
                measured=round(ours, 1), unit=f"{what}/turn", rounds=1,
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
    """Turns a second of the whole loop, the model left out, over those of the floor measured right after each run."""
    for kind in databases.kinds():
        runs = databases.run(kind, "--floor", str(SHORT), *[str(MIDDLE)] * rounds)[1:]
        ours = [MIDDLE / sum(per_turn(run, 0, False)) for run in runs]
        peer = [MIDDLE / run["floor"] for run in runs]
        ratios = [round(a / b, 3) for a, b in zip(ours, peer, strict=True)]
        yield result(
            "loop_efficiency", kind, what="turns", goal=0.4, stretch=0.6, ours=round(median(ours)),
            peer=round(median(peer)), ratio=median(ratios), measured=median(ratios), unit="turns/s", rounds=rounds,
            ratios=ratios,
        )  # fmt: skip


def _flatness(kind: str, what: str, costs: list[list[float]], turns: int, state_bytes: int) -> Result:
    early, late = [mean(cost[10:510]) for cost in costs], [mean(cost[-500:]) for cost in costs]
    ratios = [round(b / a, 3) for a, b in zip(early, late, strict=True)]
    return result(
        "cost_flatness_5000", kind, what=what, goal=1.25, stretch=1.10, ours=round(median(late) * 1000, 3),
        peer=round(median(early) * 1000, 3), ratio=median(ratios),
        measured=median(ratios), unit="ms/turn", rounds=len(costs), turns=turns,
        ratios=ratios, turns_per_second=[round(len(cost) / sum(cost)) for cost in costs], state_bytes=state_bytes,
    )  # fmt: skip


def per_turn(run: Result, clock: int, model: bool) -> list[float]:
    """Seconds of each turn, from one question to the model to the next: wall (clock 0) or processor (clock 1)."""
    marks, provider = [mark[clock] for mark in run["marks"]], [spent[clock] for spent in run["provider"]]
    whole = [after - before for before, after in pairwise(marks)]
    return whole if model else [cost - spent for cost, spent in zip(whole, provider, strict=False)]
