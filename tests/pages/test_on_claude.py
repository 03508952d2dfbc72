"""Every demo agent starts on Claude from the same form, where the host has a key; without one the form says how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from demo import AGENTS
from runs.catalog import catalog
from runs.journal.lease import now
from runs.journal.verify import verify
from runs.models import Budget, Run, Spend
from runs.runner import advance
from tests.fakes.anthropic import KEY, Fake, running
from tests.fakes.anthropic_wire import call, using
from tests.pages.story import browser

CLAUDE = "anthropic:claude-haiku-5-5"
LOOK = using(call("toolu_1", "lookup_stock", '{"sku": "LAMP-01"}'))
DONE = using(call("toolu_2", "finish", json.dumps({"answer": "Enough.", "evidence": ["call:1.1"]})))
FORM = {"goal": "Say how many.", "input_sku": "LAMP-01", "model": CLAUDE}


@pytest.fixture
def api(seeded: None, service: Any, settings: Any) -> Iterator[Fake]:
    with running() as fake:
        fake.scenarios["story"] = [LOOK, DONE]
        settings.AGENTOPS_MODELS = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": fake.url("story")}
        yield fake
        assert fake.strange == []


def start(**changes: str) -> Any:
    return browser("operator").post("/runs/new/stock-question", FORM | {"request_key": f"key-{now()}"} | changes)


def test_without_a_key_the_form_says_how_and_nothing_can_be_forced(seeded: None, settings: Any) -> None:
    settings.AGENTOPS_MODELS = {"ANTHROPIC_API_KEY": ""}
    for slug in catalog().agents:
        page = browser("operator").get(f"/runs/new/{slug}").content.decode()
        if catalog().agents[slug].get("models"):
            assert "To start it on Claude: set ANTHROPIC_API_KEY" in page and 'name="model"' not in page
    assert start().status_code == 302, "a field that is not on the form is not read"
    assert Run.objects.get().model is None


def test_with_a_key_every_demo_agent_offers_the_models_of_the_catalogue_with_their_prices(api: Fake) -> None:
    for slug in [agent["slug"] for agent in AGENTS]:
        page = browser("operator").get(f"/runs/new/{slug}").content.decode()
        assert CLAUDE in page and "$0.10 in, $0.50 out per million tokens" in page, slug
        assert "claude-opus-4-5" not in page, "only what the catalogue offers"


def test_a_run_that_was_started_on_claude_asks_claude_and_says_so(api: Fake) -> None:
    assert start().status_code == 302
    run = Run.objects.get()
    while run.due_at is not None and run.due_at <= now():
        advance(run.pk)
        run.refresh_from_db()
    assert (run.status, run.model, verify(run)) == ("succeeded", CLAUDE, [])
    assert api.asked[0][2]["model"] == "claude-haiku-5-5"
    page = browser("auditor").get(f"/runs/{run.pk}").content.decode()
    assert CLAUDE in page and "$0.0" in page and "what the API counted" in page
    Run.objects.filter(pk=run.pk).update(model="anthropic:claude-opus-5-5")
    run.refresh_from_db()
    assert "not those that it was started with" in verify(run)[0]


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "anthropic:nobody", "openai:gpt", "scripted:refund"])
def test_a_model_that_is_not_offered_or_not_allowed_is_refused(api: Fake, model: str) -> None:
    assert start(model=model).status_code == 422
    assert not Run.objects.exists()


def test_the_check_on_a_real_model_says_that_it_did_not_run_without_a_key(seeded: None, settings: Any) -> None:
    settings.AGENTOPS_MODELS = {"ANTHROPIC_API_KEY": ""}
    out, err = StringIO(), StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("try_model", stdout=out, stderr=err)
    assert ended.value.code == 2 and "NOT RUN: ANTHROPIC_API_KEY is not set" in err.getvalue()
    assert "RAN" not in out.getvalue() and not Run.objects.exists()


def test_the_check_runs_a_small_agent_and_calculates_each_cost_again(api: Fake) -> None:
    out = StringIO()
    call_command("try_model", stdout=out)
    assert f"RAN: run {Run.objects.get().pk} succeeded in 2 requests" in out.getvalue()
    assert f"for {sum(row.cost for row in Spend.objects.all())} micro-dollars" in out.getvalue()


def test_a_run_stops_at_what_it_may_spend_and_goes_on_once_a_person_lets_it_spend_more(api: Fake) -> None:
    assert start(budget="0.000001").status_code == 302
    run = Run.objects.get()
    advance(run.pk)
    run.refresh_from_db()
    assert (run.status, run.picture.stop and run.picture.stop.reason, api.asked) == ("budget_exhausted", "budget", [])
    page = browser("operator").get(f"/runs/{run.pk}").content.decode()
    assert "the budget of this run" in page and "Raise the budget that is named" in page
    extend = f"/runs/{run.pk}/extend"
    assert browser("operator").post(extend, {"budget": "0.000001", "why": "No."}).status_code == 422
    assert browser("operator").post(extend, {"budget": "1"}).status_code == 422, "without a reason"
    assert browser("operator").post(extend, {"budget": "1", "why": "Worth it."}).status_code == 302
    while (run := Run.objects.get()).due_at is not None and run.due_at <= now():
        advance(run.pk)
    assert run.status == "succeeded"
    assert list(Budget.objects.order_by("pk").values_list("limit", "reason")) == [
        (1, "set at the start"), (1_000_000, "Worth it."),
    ]  # fmt: skip
