"""Models and budgets: an admin keeps prices with their day and source, and everybody reads what things cost."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from runs.audit.checkpoints import checkpoint
from runs.engine.costs import Cost
from runs.models import Budget, Checkpoint, ModelEntry, Spend
from runs.queries import costs
from runs.templatetags.costs import money, usd
from tests.pages.story import Story, browser, person

OPUS = "anthropic:claude-opus-5-5"
PAGE = f"/models/{OPUS}"


def form(**changes: Any) -> dict[str, Any]:
    entry = ModelEntry.objects.filter(name=OPUS).latest("number")
    plain = {"name": OPUS, "based_on": entry.number, "price_input": "4", "price_output": "20", "window": "1000000"}
    return plain | {"priced_on": "2026-12-01", "source": "contract 7", "why": "New contract."} | changes


def spend(story: Story, **fields: Any) -> Spend:
    run = story.run
    row = {"turn": 1, "attempt": 1, "agent": run.agent_version.agent_id, "starter": run.starter_id}
    row |= {"day": run.started_at // costs.DAY, "settled": True, "estimate": False}
    return Spend.objects.create(run=run, **row | fields)


def text(who: str, path: str) -> str:
    return browser(who).get(path).content.decode()


def test_the_first_catalogue_has_prices_with_day_and_source_and_no_price_that_nobody_stated(seeded: None) -> None:
    opus = ModelEntry.objects.get(name=OPUS)
    assert (opus.prices["input"], opus.prices["output"], opus.prices["cache_read"]) == (4_000_000, 20_000_000, 200_000)
    haiku = ModelEntry.objects.get(name="anthropic:claude-haiku-5-5")
    assert (haiku.prices["cache_write_5m"], haiku.long, haiku.beyond["output"]) == (125_000, 100_000, 2_500_000)
    assert "cache_write_5m" not in haiku.beyond, "the long step of writing is not stated anywhere"
    assert all(entry.priced_on == "2026-11-30" and entry.source for entry in ModelEntry.objects.all())
    page = text("auditor", "/models")
    assert OPUS in page and "$4.00" in page and "2026-11-30" in page and "Set a budget" not in page


def test_a_change_is_a_new_version_with_author_and_reason_and_the_old_one_stays(seeded: None) -> None:
    assert browser("operator").post(PAGE, form()).status_code == 403
    assert browser("admin").post(PAGE, form()).status_code == 302
    old, new = ModelEntry.objects.filter(name=OPUS).order_by("number")
    assert (old.number, new.number, new.author, new.reason) == (1, 2, person("admin"), "New contract.")
    assert "cache_read" in old.prices and "cache_read" not in new.prices, "what is left empty is unknown"
    page = text("auditor", PAGE)
    assert "New contract." in page and "first list of prices" in page and "unknown" in page
    with pytest.raises(DatabaseError), transaction.atomic():
        ModelEntry.objects.filter(pk=old.pk).update(prices={"input": 1})
    with pytest.raises(DatabaseError), transaction.atomic():
        ModelEntry.objects.filter(pk=old.pk).delete()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"price_input": "four"}, "Write US dollars, for example 2.50"),
        ({"price_input": "0.0000001"}, "at most six places"),
        ({"price_input": "-1"}, "A price is not negative."),
        ({"source": ""}, "Say where the price stands."),
        ({"priced_on": ""}, "Say on which day it had this price."),
        ({"priced_on": "1.12.2026"}, "Write a day as 2026-11-30."),
        ({"priced_on": "2999-01-01"}, "That day has not come yet."),
        ({"long": "100000"}, "Name both: from how many tokens on"),
        ({"why": ""}, "Say why"),
    ],
)
def test_what_is_wrong_is_said_where_it_is_wrong_and_what_was_typed_is_kept(
    seeded: None, wrong: dict[str, str], told: str
) -> None:
    answer = browser("admin").post(PAGE, form(window="777777") | wrong)
    assert answer.status_code == 422 and told in answer.content.decode() and "777777" in answer.content.decode()
    assert ModelEntry.objects.filter(name=OPUS).count() == 1


def test_who_edits_an_outdated_version_overwrites_nobody(seeded: None) -> None:
    stale = form(price_input="9")
    assert browser("admin").post(PAGE, form()).status_code == 302
    answer = browser("admin").post(PAGE, stale)
    assert answer.status_code == 409 and "came in meanwhile" in answer.content.decode()
    assert ModelEntry.objects.filter(name=OPUS).latest("number").prices["input"] == 4_000_000


def test_a_model_of_ones_own_can_be_added_and_one_without_a_provider_here_cannot(seeded: None) -> None:
    new = form(name="ollama:mine", based_on=0, price_input="0", price_output="0")
    assert browser("admin").post("/models/new", new | {"name": "nobody:x"}).status_code == 422
    assert browser("admin").post("/models/new", new).status_code == 302
    entry = ModelEntry.objects.get(name="ollama:mine")
    assert entry.prices == {"input": 0, "output": 0}, "0 was said, and is not unknown"


def test_a_budget_is_set_with_a_reason_shown_with_what_is_used_and_lifted_by_an_empty_field(asked: Story) -> None:
    agent = asked.run.agent_version.agent_id
    given = {"place": f"agent:{agent}", "limit": "12.50", "why": "December."}
    assert browser("operator").post("/models", given).status_code == 403
    assert browser("admin").post("/models", given | {"why": " "}).status_code == 422
    assert browser("admin").post("/models", given).status_code == 302
    row = Budget.objects.get()
    assert (row.scope, row.key, row.limit, row.author) == ("agent", agent, 12_500_000, person("admin"))
    page = text("auditor", "/models")
    assert "$12.50" in page and "December." in page
    assert browser("admin").post("/models", given | {"limit": ""}).status_code == 302
    assert "What may be spent is not bounded here" in text("auditor", "/models").replace("what may", "What may")
    with pytest.raises(DatabaseError), transaction.atomic():
        Budget.objects.update(limit=1)


def test_entries_and_budgets_are_in_the_next_checkpoint_by_digest(seeded: None) -> None:
    checkpoint(at_once=True)
    assert browser("admin").post(PAGE, form()).status_code == 302
    given = {"place": "day:0", "limit": "5", "why": "A try."}
    assert browser("admin").post("/models", given).status_code == 302
    checkpoint(at_once=True)
    content = Checkpoint.objects.latest("number").content
    assert '"models":[[' in content and '"budgets":[[' in content
    assert not ModelEntry.objects.filter(checkpoint=None).exists()


def test_a_cost_stands_on_the_turn_the_run_the_list_the_agent_and_the_day(asked: Story) -> None:
    spend(asked, cost=17_800)
    spend(asked, cost=1_200, attempt=2)
    assert "$0.019" in text("auditor", asked.page)
    for path in ("/runs", "/agents", "/overview"):
        assert "$0.019" in text("auditor", path), path
    assert costs.of_turns(asked.run, [1]) == {1: Cost(19_000)}


def test_a_cost_is_at_least_a_sum_where_a_stream_was_cut_and_unknown_where_a_price_is(asked: Story) -> None:
    spend(asked, cost=17_800)
    spend(asked, cost=500, estimate=True, attempt=2)
    page = text("auditor", asked.page)
    assert "≥ $0.0183" in page and "an estimate: an answer was cut" in page
    assert "≥ $0.0183" in text("auditor", "/overview")
    spend(asked, cost=None, attempt=3)
    assert costs.of_runs([asked.run.pk]) == {asked.run.pk: Cost(None, estimate=True)}
    assert "unknown" in text("auditor", "/runs")


def test_sums_are_written_exactly_where_they_are_small() -> None:
    assert [usd(n) for n in (0, 1, 17_800, 500_000, 1_234_567_890)] == [
        "$0.00", "$0.000001", "$0.0178", "$0.50", "$1,234.57",
    ]  # fmt: skip
    assert (money(None), money(Cost(None)), usd(None)) == ("–", "unknown", "–")
