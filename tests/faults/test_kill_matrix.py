"""kill -9 at every place where it could hurt, many runs at once; the order service's ledger is the oracle.

A place that was never hit is not tested: each worker counts its own end in a file, and a case whose fault never fired
fails. TEST_CHAOS_ROUNDS=n plays n rounds instead of one (`make chaos`).
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter

import pytest

from tests.stack import until
from tests.stories.people import AT_REST, ENDS, House, vote_on

ROUNDS = int(os.environ.get("TEST_CHAOS_ROUNDS", "1"))
WORKER_POINTS = (
    "after_ask",
    "after_intent",
    "before_send",
    "after_effect",
    "after_outcome",
    "before_append",
    "after_append",
)
GOALS: dict[str, dict[str, str]] = {
    "refund": {"amount": "80.00"},
    "messenger": {"text": "Your lamp is on its way."},
    "order-investigation": {"order_id": "O-1043"},
    "stock-question": {"sku": "LAMP-01"},
}


def crowd(house: House, agents: str) -> list[int]:
    """Runs of all kinds."""
    return house.start_all([(agent, GOALS[agent]) for agent in agents.split()])


def decide_all(house: House, runs: list[int]) -> None:
    """A person who approves whatever is in the inbox."""
    pending = [approval for run in runs for approval in house.approvals(run, "pending")]
    for answer in house.side_by_side([("approvals.decide", vote_on(approval)) for approval in pending]):
        assert answer.status in (200, 409), answer


def attest_all(house: House, runs: list[int]) -> Counter[str]:
    """A person who looks into the ledger and says what happened; then resumes what stopped because workers died."""
    done: Counter[str] = Counter()
    for run in runs:
        if house.status(run) != "needs_human":
            continue
        for call in [c for c in house.calls(run) if c["status"] == "unknown"]:
            happened = [e for e in house.effects_of(run) if e["kind"] == "message" or e["key"] == call["key"]]
            verdict = "happened" if happened else "again"
            reference = happened[0]["object"] if happened else ""
            answer = house.act(
                "approvals.attest", run_id=run, turn=call["turn"], ordinal=call["ordinal"], person="reviewer",
                verdict=verdict, reference=reference, why="I looked into the ledger.",
            )  # fmt: skip
            assert answer.status in (200, 409), answer
            done[verdict] += answer.status == 200
        stop = house.state(run).get("stop")
        if stop and "crashes" in json.dumps(stop):
            assert house.act("runs.resume", run_id=run, person="operator").status == 200
            done["resumed"] += 1
    return done


def at_rest(house: House, runs: list[int]) -> bool:
    """Every run has ended, or waits with an item in the inbox."""
    return all(house.status(run) in AT_REST for run in runs)


def idle(house: House) -> bool:
    """Nothing is due: only people, or more work, can move anything."""
    return not house.stack.sql("SELECT count(*) AS n FROM runs_run WHERE due_at IS NOT NULL")[0]["n"]


def brought_home(house: House, runs: list[int], seconds: float = 40) -> Counter[str]:
    """People do their part until everything has ended; nothing is ever stuck."""
    done: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while any(house.status(run) not in ENDS for run in runs):
        assert time.monotonic() < end, "\n\n".join(house.tell(r) for r in runs if house.status(r) not in ENDS)
        until(lambda: at_rest(house, runs), seconds, "every run has ended or waits for people")
        for run in runs:
            waiting_for_people(house, run)
        decide_all(house, runs)
        done += attest_all(house, runs)
        time.sleep(0.05)
    return done


def waiting_for_people(house: House, run: int) -> None:
    """A run that is at rest and has not ended is in the inbox: an approval, a question, an unknown effect or a stop."""
    row = house.run(run)
    if row["status"] in ENDS:
        assert row["lease_until"] is None and row["due_at"] is None
    elif row["status"] == "waiting_approval":
        assert house.approvals(run, "pending"), house.tell(run)
    elif row["status"] == "needs_human":
        assert json.loads(row["state"])["stop"], house.tell(run)


def proven(house: House, runs: list[int]) -> None:
    """What must hold after any of it."""
    house.one_effect_each(runs)
    for run in runs:
        assert house.status(run) == "succeeded", house.tell(run)
        started = [e["body"]["key"] for e in house.events(run, "CallStarted")]
        consumed = [a for a in house.approvals(run) if a["status"] == "consumed"]
        effects = [c for c in house.calls(run) if c["effect"] not in ("read", "host")]
        assert len(consumed) == len(effects) and len(set(started)) == len({c["key"] for c in house.calls(run)} - {None})
    done = house.stack.manage("verify_audit", *map(str, runs))
    assert f"{len(runs)} runs verified, no fault" in done.stdout


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_workers_that_die_at_every_point_lose_nothing_and_repeat_nothing(house: House, round_: int) -> None:
    runs = crowd(house, "refund messenger order-investigation refund messenger refund order-investigation messenger")
    until(lambda: at_rest(house, runs), 20, "all wait for a person")
    with house.frozen_process("worker"):
        nth = 1 + round_ % 3
        workers = house.armed(*(f"{point}:kill:{nth}" for point in WORKER_POINTS))
        runs += crowd(house, "stock-question stock-question")
        decide_all(house, runs)
        more = itertools.cycle(("stock-question", "refund"))
        while any(w.state for w in workers):
            left = sum(bool(w.state) for w in workers)
            until(
                lambda n=left: sum(bool(w.state) for w in workers) < n or idle(house), 30, "a worker dies, or all idle"
            )
            if left == sum(bool(w.state) for w in workers):
                runs += crowd(house, next(more))  # they still wait for their moment
                decide_all(house, runs)
        hits = {worker.fault: worker.hits for worker in workers}
    assert all(hits.values()), f"points that were never hit: {hits}"
    brought_home(house, runs)
    proven(house, runs)


def test_a_person_whose_process_dies_right_after_the_commit_has_decided(house: House) -> None:
    runs = crowd(house, "refund messenger")
    approvals = [house.approval(run) for run in runs]
    for approval in approvals:
        house.act_and_die("approvals.decide", **vote_on(approval))
    assert [len(house.events(run, "Decided")) for run in runs] == [1, 1], "killed after the commit"
    for run in runs:
        assert house.reached(run, *ENDS) == "succeeded", "the sweep found what nobody was told of"
    proven(house, runs)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_everything_killed_at_once_comes_back_and_goes_on(house: House, round_: int) -> None:
    runs = crowd(house, "refund messenger order-investigation refund messenger refund")
    until(lambda: at_rest(house, runs), 20, "all wait for a person")
    for run in runs[: len(runs) // 2 + 1]:  # at three stages: in the air, just decided, not decided
        house.stack.faults.arm("slow_reply", method="POST", contains=house.order_of(run), seconds=3)
    decide_all(house, runs[:4])
    until(lambda: len(house.effects_of(runs[0])) + len(house.effects_of(runs[1])) == 2, what="effects without outcomes")
    reads = crowd(house, "stock-question stock-question")
    dead = house.stack.processes()
    house.stack.restart(kill=True)
    assert not set(dead.values()) & set(house.stack.processes().values())
    runs += reads
    people = brought_home(house, runs)
    assert people["happened"] == 1, f"the message that was in the air was put to a person: {people}"
    proven(house, runs)


def test_hints_that_are_lost_and_a_sweeper_that_stands_still_cost_time_and_never_work(house: House) -> None:
    ended, *waiting = crowd(house, "stock-question refund messenger")
    until(lambda: at_rest(house, [ended, *waiting]), what="waiting for a person")
    with house.frozen_process("sweeper"):
        with house.frozen_process("worker"):
            # Redis has promised the next message to the connection of the frozen worker: a hint that says nothing.
            house.ok("wake", run=ended, times=2)
            until(lambda: house.waiting_hints() >= 1, what="one is promised, the other waits")
            house.empty_broker()
            started = crowd(house, "stock-question refund")
            decide_all(house, waiting)
            until(lambda: house.empty_broker() or house.waiting_hints() == 0, what="the hints are lost")
            until(
                lambda: all(house.run(r)["due_at"] == 0 for r in [*waiting, *started]), what="runnable, by their rows"
            )
            quiet = time.monotonic() + 1  # hints are published after the commit, by a thread of their own
            while time.monotonic() < quiet:
                house.empty_broker()
                time.sleep(0.05)
        epochs = [house.run(run)["epoch"] for run in started]
        time.sleep(0.8)  # longer than a sweep and a wake: nobody looks
        assert [house.run(run)["epoch"] for run in started] == epochs == [0, 0], "without hint and sweep nothing moves"
    for run in waiting:
        assert house.reached(run, *ENDS) == "succeeded"
    until(lambda: at_rest(house, started), what="the sweep found them all")
    brought_home(house, started)
    proven(house, [*waiting, *started])


def test_wakes_that_come_again_and_again_cost_no_epoch(house: House) -> None:
    waiting, ended = crowd(house, "refund stock-question")
    house.reached(waiting, "waiting_approval")
    house.reached(ended, "succeeded")
    rows = [house.run(run) for run in (waiting, ended)]
    for run in (waiting, ended):
        house.ok("wake", run=run, times=25)
    last = house.start("stock-question", sku="LAMP-01")  # its wake is behind the others
    house.reached(last, "succeeded")
    until(lambda: house.waiting_hints() == 0, what="all of them were taken")
    assert [house.run(run) for run in (waiting, ended)] == rows, "not an epoch, not an event"
    house.approve(waiting)
    assert house.reached(waiting, *ENDS) == "succeeded"
    proven(house, [waiting, ended, last])
