"""Costs of whole runs on the Messages API: reserved before, settled after, and stopped by the budget that is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.actions.catalogue import set_budget, set_model
from runs.actions.runs import resume
from runs.engine.costs import bound
from runs.journal import lease
from runs.journal.lease import now
from runs.models import Account, ModelEntry, Run, Spend
from runs.runner.loop import begin
from tests.fakes.anthropic import Fake
from tests.fakes.anthropic_wire import call, using
from tests.journal.story import person
from tests.stories.playing import Play
from tests.stories.test_real_api import DONE, LOOK, api, played

pytestmark = pytest.mark.django_db
__all__ = ["api"]
MODEL = "anthropic:fake-1"
PRICES = {"input": 4_000_000, "output": 20_000_000, "cache_read": 200_000}


@pytest.fixture(autouse=True)
def priced(api: Fake) -> None:
    ModelEntry.objects.create(name=MODEL, number=1, prices=PRICES, reason="test", at=now())
    return


def used(scope: str, key: int = 0) -> int:
    return Account.objects.filter(scope=scope, key=key).order_by("-day").values_list("used", flat=True)[0]


def detail(play: Play) -> str:
    return str(play.events("RunStopped")[-1]["detail"])


def test_what_a_run_cost_is_what_a_hand_calculation_on_its_recorded_usage_says(api: Fake) -> None:
    play = played(api, LOOK, DONE)
    rows = list(Spend.objects.filter(run=play.run))
    assert [row.turn for row in rows] == [1, 2] and all(row.settled and not row.estimate for row in rows)
    for row in rows:
        assert row.usage["input"] and row.usage["output"]
        assert row.cost == row.usage["input"] * 4 + row.usage["output"] * 20  # micro-dollars: 4 and 20 USD a million
        assert row.cost < row.reserved
    whole = sum(row.cost for row in rows)
    places = {"run": play.run.pk, "day": 0, "agent": play.run.agent_version.agent_id, "person": play.run.starter_id}
    assert {scope: used(scope, key) for scope, key in places.items()} == dict.fromkeys(places, whole)


def test_the_reservation_stands_before_the_request_goes_out_and_covers_it(api: Fake) -> None:
    play = played(api, LOOK, DONE)
    first = Spend.objects.get(run=play.run, turn=1)
    body = api.asked[0][2]
    least = bound(len(str(body["messages"])), body["max_tokens"], first.entry.tariff if first.entry else None)
    assert least is not None and first.reserved is not None and first.reserved >= least


def test_a_stream_that_was_cut_is_an_estimate_and_keeps_its_reservation(api: Fake) -> None:
    torn = replace(using(call("toolu_1", "poke", '{"name": "lamp", "times": 2}')), cut=-1, ending="eof")
    play = played(api, torn)
    row = Spend.objects.get(run=play.run)
    assert row.settled and row.estimate and 0 < row.cost < row.reserved
    assert used("run", play.run.pk) == row.reserved


def test_a_request_whose_worker_died_keeps_what_it_reserved(api: Fake) -> None:
    api.scenarios["story"] = [LOOK, LOOK, DONE]
    play = Play(model=MODEL)
    claimed = lease.claim(play.pk)
    assert claimed is not None
    begin(*claimed).step()  # the request is in the air, and its worker is gone
    row = Spend.objects.get(run=play.pk)
    assert not row.settled and row.cost is None and row.estimate and used("run", play.pk) == row.reserved
    Run.objects.filter(pk=play.pk).update(lease_until=None, due_at=0)
    play.go()
    row.refresh_from_db()
    assert not row.settled and play.events("ModelFailed")[0]["reason"] == "abandoned"
    assert used("run", play.pk) >= row.reserved


def test_a_refusal_by_the_server_costs_nothing(api: Fake) -> None:
    from tests.fakes.anthropic_wire import SCENARIOS

    play = played(api, *SCENARIOS["bad_key"])
    row = Spend.objects.get(run=play.run)
    assert (row.cost, row.estimate, row.settled, used("day")) == (0, False, True, 0)


@pytest.mark.parametrize("scope", ["day", "agent", "person"])
def test_a_budget_that_is_used_up_stops_the_run_names_itself_and_once_raised_lets_it_go_on(
    api: Fake, scope: str
) -> None:
    boss = person("boss", "admin")
    api.scenarios["story"] = [LOOK, DONE]
    play = Play(model=MODEL)
    key = {"day": 0, "agent": play.run.agent_version.agent_id, "person": play.run.starter_id}[scope]
    set_budget(boss, scope, key, 1_000, "Little.")
    play.go()
    assert play.stop == ("budget_exhausted", "budget") and api.asked == []
    assert {"day": "of this installation", "agent": "of agent", "person": "of person"}[scope] in detail(play)
    assert "$0.0010" in detail(play)
    set_budget(boss, scope, key, 50_000_000, "Enough.")
    resume(play.run.pk, play.run.starter)
    assert play.go().run.status == "succeeded"


def test_the_limit_of_a_run_stops_it_and_a_person_extends_it(api: Fake) -> None:
    api.scenarios["story"] = [LOOK, DONE]
    play = Play(model=MODEL)
    set_budget(play.run.starter, "run", play.pk, 1_000, "A small run.")
    assert play.go().stop == ("budget_exhausted", "budget") and "the budget of this run" in detail(play)
    set_budget(play.run.starter, "run", play.pk, 5_000_000, "Worth it.")
    resume(play.pk, play.run.starter)
    assert play.go().run.status == "succeeded"


def test_without_a_price_the_cost_is_unknown_and_no_budget_can_be_kept_so_it_is_not_asked(api: Fake) -> None:
    ModelEntry.objects.create(name=MODEL, number=2, prices={"input": 1}, reason="output is not known", at=now())
    assert {row.cost for row in Spend.objects.filter(run=played(api, LOOK, DONE).run)} == {None}
    set_budget(person("boss", "admin"), "day", 0, 50_000_000, "Plenty.")
    asked = len(api.asked)
    play = played(api, LOOK, DONE)
    assert play.stop == ("budget_exhausted", "budget") and len(api.asked) == asked
    assert f"no price is known of {MODEL}" in detail(play)


def test_a_new_price_counts_from_the_next_request_and_never_for_those_before(api: Fake) -> None:
    before = played(api, LOOK, DONE).run
    costs = list(Spend.objects.filter(run=before).values_list("cost", flat=True))
    content: dict[str, Any] = {"prices": {"input": 8_000_000, "output": 40_000_000}, "source": "letter"}
    set_model(person("boss", "admin"), MODEL, content, "They doubled.", 1)
    after = played(api, LOOK, DONE).run
    assert list(Spend.objects.filter(run=before).values_list("cost", flat=True)) == costs
    assert set(Spend.objects.filter(run=after).values_list("cost", flat=True)) == {cost * 2 for cost in costs}
