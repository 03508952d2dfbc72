"""Two who act at the same moment, in processes of their own: one wins, the other is told, and nothing happens twice.

A race of which only one order was seen has not been run, and fails. TEST_RACES_ROUNDS is the number of approvals that
twenty people decide; the other races take a share of it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.races.course import RACERS, Course, course, databases, job, one_of

ROUNDS = int(os.environ.get("TEST_RACES_ROUNDS", "30"))
SHARE = max(24, ROUNDS // 10)
DELIVERIES = 50
ASKS = {"defaults": {"poke": "ask"}}


@pytest.fixture(scope="module", params=databases())
def on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    seed = int(os.environ.get("TEST_RACES_SEED", "1"))
    with course(request.param, tmp_path_factory.mktemp(request.param), seed) as made:
        yield made
        made.keep()


def told(winner: str, *answers: object) -> bool:
    return all(f"{winner} has already" in str(answer) for answer in answers)


# --- people against people --------------------------------------------------------------------------------------------
def test_of_twenty_who_decide_at_once_one_wins_and_nineteen_are_told_who(on: Course) -> None:
    began, winners, places = time.monotonic(), Counter[str](), Counter[str]()
    names = [f"operator-{n}" for n in range(RACERS)]
    for shown in on.prepared("asked", ROUNDS):
        votes = [("approve", "reject")[on.random.random() < 0.5] for _ in names]
        jobs = [
            job("decide", approval=shown["approval"], who=name, vote=vote, digest=shown["digest"])
            for name, vote in zip(names, votes, strict=True)
        ]
        answers = on.race(*jobs)
        winner = one_of(answers, *names)
        losers = [answer for answer in answers if answer.status != 200]
        assert [answer.status for answer in losers] == [409] * (RACERS - 1) and told(winner, *losers)
        vote, seen = votes[names.index(winner)], on.seen(shown["run"])
        assert seen["votes"] == [[winner, vote]] and seen["kinds"].count("Decided") == 1
        assert seen["approvals"] == [{"approve": "approved", "reject": "rejected"}[vote]]
        assert seen["call"]["status"] == {"approve": "ready", "reject": "refused"}[vote]
        winners[vote] += 1
        places[winner] += 1
    assert len(places) > RACERS // 4, f"always the same few: {places}"
    on.report("twenty deciders", ROUNDS, winners, began, deciders=RACERS, decisions=ROUNDS * RACERS)


def test_the_same_person_who_decides_the_same_twice_has_decided_once(on: Course) -> None:
    began, winners = time.monotonic(), Counter[str]()
    for n, shown in enumerate(on.prepared("asked", SHARE)):
        vote = ("approve", "reject")[n % 2]
        same = {"approval": shown["approval"], "who": "operator-3", "digest": shown["digest"], "vote": vote}
        answers = on.race(*(job("decide", **same) for _ in range(4)))
        assert [answer.status for answer in answers] == [200] * 4, answers
        seen = on.seen(shown["run"])
        assert seen["votes"] == [["operator-3", vote]] and seen["kinds"].count("Decided") == 1
        winners[vote] += 1
    on.report("same person, same vote", SHARE, winners, began, windows=4)


def test_the_same_person_who_decides_both_ways_at_once_is_held_to_the_first(on: Course) -> None:
    began, winners = time.monotonic(), Counter[str]()
    for shown in on.prepared("asked", SHARE):
        same = {"approval": shown["approval"], "who": "operator-3", "digest": shown["digest"]}
        answers = on.race(job("decide", **same, vote="approve"), job("decide", **same, vote="reject"))
        vote = one_of(answers, "approve", "reject")
        assert sorted(answer.status for answer in answers) == [200, 409]
        assert on.seen(shown["run"])["votes"] == [["operator-3", vote]]
        winners[vote] += 1
    on.report("same person, both votes", SHARE, winners, began)


def test_an_edit_and_a_decision_do_not_both_stand(on: Course) -> None:
    began, winners, balance = time.monotonic(), Counter[str](), on.balance()
    for shown in on.prepared("asked", SHARE):
        early, late = balance.starts()
        about = {"approval": shown["approval"], "digest": shown["digest"]}
        answers = on.race(
            job("edit", **about, who="operator-1", late=early),
            job("decide", **about, who="operator-2", vote="approve", late=late),
        )
        winner = one_of(answers, "edit", "approve")
        assert sorted(answer.status for answer in answers) == [200, 409]
        on.one("work", run=shown["run"])
        seen = on.seen(shown["run"])
        effects = on.ledger()[seen["call"]["key"]]
        assert [effect["times"] for effect in effects] == [7 if winner == "edit" else 2], "what ran is what won"
        assert seen["approvals"] == (["superseded", "consumed"] if winner == "edit" else ["consumed"])
        winners[winner] += 1
        balance.won(winner == "edit")
    on.report("edit against decision", SHARE, winners, began, effects=SHARE)


def test_a_form_that_is_sent_again_and_again_starts_one_run(on: Course) -> None:
    began, winners = time.monotonic(), Counter[str]()
    for n in range(SHARE):
        goals = [f"form {n} from window {k}" for k in range(4)]
        answers = on.race(*(job("started", goal=goal, token=f"form-{n}") for goal in goals))
        assert len({answer["result"] for answer in answers}) == 1, "all are shown the same run"
        assert on.one("runs_with", goals=goals) == 1
        winners[on.seen(answers[0]["result"])["goal"].rpartition("from ")[2]] += 1
    on.report("one form token", SHARE, winners, began, posts=4 * SHARE)


# --- workers against workers ------------------------------------------------------------------------------------------
def test_of_twenty_workers_who_ask_at_once_three_get_the_last_dollars_of_a_budget_for_three(on: Course) -> None:
    began, winners, places = time.monotonic(), Counter[str](), Counter[int]()
    rounds = max(4, SHARE // 4)
    for n in range(rounds):
        runs = [on.one("started", goal=f"budget {n}.{k}") for k in range(RACERS)]
        told = on.one("budget", requests=3)
        answers = on.race(*(job("ask", run=run, agent=told["agent"]) for run in runs))
        assert [answer.status for answer in answers] == [200] * RACERS, answers
        said = [str(answer["result"]) for answer in answers]
        assert said.count("asked") == 3, said
        assert all("the budget of agent" in one for one in said if one != "asked")
        found = on.one("spent", agent=told["agent"], runs=runs)
        assert found == {"used": told["before"] + 3 * told["each"], "reserved": 3}
        places.update(k for k, one in enumerate(said) if one == "asked")
        winners.update(["asked"] * 3 + ["refused"] * (RACERS - 3))
    assert len(places) > 3, f"always the same few: {places}"
    on.report("workers against a budget", rounds, winners, began, requests=rounds * RACERS)


# --- people against time and workers ----------------------------------------------------------------------------------
def test_a_decision_counts_only_before_the_expiry_and_the_databases_clock_says_which(on: Course) -> None:
    on.one("policy", content={"rules": [{"id": "soon", "effect": "ask", "tools": ["poke"], "expires": 1}]})
    began, winners, balance = time.monotonic(), Counter[str](), on.balance()
    for _ in range(-(-SHARE // 10)):
        group, jobs = on.prepared("asked", 10), []
        for shown in group:
            wait = shown["expires"] / 1e6 - time.time()  # the databases of a race have this machine's clock
            vote = {"approval": shown["approval"], "digest": shown["digest"], "vote": "approve"}
            jobs.append(
                job("decide", **vote, who="operator-1", late=wait + balance.later + on.random.uniform(-0.06, 0.02))
            )
            jobs.append(job("work", run=shown["run"], late=wait))
        decisions = on.race(*jobs, gap=0)[::2]
        for shown, decision in zip(group, decisions, strict=True):
            assert decision.status in (200, 410), decision
            for _ in range(2):  # whoever lost left something to do: the start, or the record of the expiry
                on.one("work", run=shown["run"])
            seen = on.seen(shown["run"])
            if decision.status == 200:
                assert seen["at"]["Decided"] < shown["expires"] and seen["approvals"] == ["consumed"]
                assert len(on.ledger()[seen["call"]["key"]]) == 1
            else:
                assert seen["approvals"] == ["expired"] and seen["call"]["status"] == "expired"
                assert "CallStarted" not in seen["kinds"] and seen["call"]["key"] is None
            winners["decision" if decision.status == 200 else "expiry"] += 1
        balance.won(sum(decision.status == 200 for decision in decisions) > len(decisions) // 2)
    on.one("policy", content=ASKS)
    on.report("decision against expiry", winners.total(), winners, began, expired_and_consumed=0)


def test_a_cancel_against_an_intent_either_withdraws_or_is_honest(on: Course) -> None:
    began, winners, after, balance = time.monotonic(), Counter[str](), 0, on.balance()
    for shown in on.prepared("approved", SHARE):
        run, (early, late) = shown["run"], balance.starts()
        on.race(job("work", run=run, late=early), job("cancel", run=run, who="operator-2", late=late))
        on.one("work", run=run)
        seen = on.seen(run)
        effects = on.ledger().get(seen["call"]["key"] or "", [])
        assert seen["status"] == "cancelled"
        if "CallStarted" in seen["kinds"]:
            assert (len(effects), seen["call"]["status"], seen["call"]["outcome"]) == (1, "done", "ok")
            assert seen["approvals"] == ["consumed"]
            after += seen["call"]["after_cancel"]
        else:
            assert (effects, seen["call"]["status"], seen["approvals"]) == ([], "withdrawn", ["withdrawn"])
        winners["intent" if effects else "cancel"] += 1
        balance.won(bool(effects))
    on.report("cancel against intent", SHARE, winners, began, told_as_after_the_cancel=after)


def test_a_policy_that_is_published_before_the_start_is_what_the_start_is_judged_by(on: Course) -> None:
    began, winners, balance = time.monotonic(), Counter[str](), on.balance()
    for shown in on.prepared("approved", SHARE):
        early, late = balance.starts()
        on.everybody("fresh")  # every worker has read the policy that is about to end
        _, published = on.race(
            job("work", run=shown["run"], late=early),
            job("policy", content=ASKS | {"off": ["poke"]}, late=late, clock=True),
        )
        seen = on.seen(shown["run"])
        effects = on.ledger().get(seen["call"]["key"] or "", [])
        if "CallStarted" in seen["kinds"]:
            assert seen["at"]["CallStarted"] <= published["over"], "begun after the new policy was in force"
            assert len(effects) == 1 and seen["approvals"] == ["consumed"]
        else:
            assert (effects, seen["call"]["status"], seen["approvals"]) == ([], "denied", ["superseded"])
        winners["start" if effects else "policy"] += 1
        balance.won(bool(effects))
        on.one("policy", content=ASKS)
    on.report("policy against start", SHARE, winners, began, started_under_a_stale_policy=0)


# --- workers against workers ------------------------------------------------------------------------------------------
def test_fifty_deliveries_of_one_wake_are_one(on: Course) -> None:
    began, winners, trials = time.monotonic(), Counter[str](), max(12, ROUNDS // 20)
    alone, *many = on.prepared("approved", trials + 1)
    before = on.seen(alone["run"])["epoch"]
    on.one("work", run=alone["run"])
    as_one = on.seen(alone["run"])
    assert as_one["epoch"] == before + 1
    share, rest = divmod(DELIVERIES, RACERS)
    for shown in many:
        on.race(*(job("work", run=shown["run"], deliveries=share + (n < rest)) for n in range(RACERS)))
        seen = on.seen(shown["run"])
        assert (seen["epoch"], seen["kinds"]) == (as_one["epoch"], as_one["kinds"]), "one epoch, not one event more"
        (effect,) = on.ledger()[seen["call"]["key"]]
        winners[f"process {effect['pid']}"] += 1
    on.report("fifty deliveries", trials, Counter(dict(winners.most_common(5))), began, deliveries=DELIVERIES * trials,
              extra_epochs=0, extra_events=0, processes=len(winners))  # fmt: skip


def test_of_two_who_claim_one_holds_the_lease(on: Course) -> None:
    began, winners = time.monotonic(), Counter[str]()
    for shown in on.prepared("approved", SHARE):
        before = on.seen(shown["run"])["epoch"]
        epochs = [answer["result"] for answer in on.race(*[job("claim", run=shown["run"])] * 2)]
        assert sorted(epochs) == [0, before + 1], "one holder, one epoch more"
        winners[("first", "second")[epochs.index(0) == 0]] += 1
    on.report("two claims", SHARE, winners, began, extra_epochs=0)


def test_two_sweepers_find_the_same_and_nothing_is_done_twice(on: Course) -> None:
    began, winners, trials = time.monotonic(), Counter[str](), max(12, ROUNDS // 20)
    on.everybody("drain")  # a sweep takes the 500 that have waited longest
    found_by_both = 0
    for _ in range(trials):
        ids = [shown["run"] for shown in on.prepared("approved", 4)]
        first, second = on.race(*[job("sweep", runs=ids)] * 2)
        assert {*first["result"], *second["result"]} == set(ids), "nobody is forgotten"
        found_by_both += len({*first["result"]} & {*second["result"]})
        for run in ids:
            seen = on.seen(run)
            (effect,) = on.ledger()[seen["call"]["key"]]
            assert seen["kinds"].count("CallStarted") == 1
            winners["first" if effect["pid"] == first["pid"] else "second"] += 1
    assert found_by_both, "they never swept at the same time"
    on.report("two sweepers", trials, winners, began, runs=4 * trials, found_by_both=found_by_both)
