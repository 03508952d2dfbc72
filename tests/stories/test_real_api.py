"""Whole runs on the Messages API: real runner, real SDK, and a server as strict as the real one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runs import catalog as the_catalog
from runs.providers import PROVIDERS
from runs.providers.base import Answer, Request
from runs.providers.scripted import Scripted
from tests.fakes.anthropic import KEY, Fake, running
from tests.fakes.anthropic_wire import SCENARIOS, Reply, call, text, thinking, using
from tests.stories import playing
from tests.stories.playing import Play, finish, world
from tests.stories.playing import call as wish
from tests.stories.playing import text as says

pytestmark = pytest.mark.django_db
SEEN = "thing:lamp:v1"
LOOK = using(thinking("A lamp?"), text("I look."), call("toolu_1", "look", '{"name": "la', 'mp"}'))
DONE = using(call("toolu_9", "finish", json.dumps({"answer": "Done.", "evidence": [SEEN]})))


@pytest.fixture
def api(db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Fake]:
    """The API; every tool of the play; afterwards each record verifies."""
    for name, tool in playing.TOOLS.items():
        monkeypatch.setitem(the_catalog.catalog().tools, name, tool)
    world.clear()
    playing.first_policy()
    with running() as fake:
        settings.AGENTOPS_MODELS = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": fake.url("story")}
        yield fake
        assert fake.strange == []
    assert playing.faults() == {}


def played(api: Fake, *replies: Reply) -> Play:
    api.scenarios["story"] = list(replies)
    return Play(model="anthropic:fake-1").go()


def test_a_run_looks_thinks_and_succeeds_on_evidence(api: Fake) -> None:
    play = played(api, LOOK, DONE)
    assert play.run.status == "succeeded" and play.call().outcome == "ok"
    second = api.asked[1][2]["messages"]
    assert [block["type"] for block in second[1]["content"]] == ["thinking", "text", "tool_use"]
    assert second[2]["content"][0]["tool_use_id"] == "toolu_1"
    assert play.events("ModelAnswered")[0]["tokens"] == 102


def test_what_asks_a_person_waits_and_then_happens_once(api: Fake) -> None:
    play = played(api, using(call("toolu_1", "poke", '{"name": "lamp", "times": 2}')), DONE)
    assert play.run.status == "waiting_approval" and world == []
    play.approve()
    assert [effect[0] for effect in world] == ["poke"]


def test_what_was_cut_is_asked_again_and_none_of_it_happens(api: Fake) -> None:
    cut = Reply(blocks=(call("toolu_1", "poke", '{"name": "lamp", "times": 2}'),), stop="max_tokens")
    torn = replace(using(call("toolu_1", "poke", '{"name": "lamp", "times": 2}')), cut=-1, ending="eof")
    play = played(api, cut, LOOK, DONE)
    assert play.run.status == "succeeded" and world == []
    assert [b["reason"] for b in play.events("ModelFailed")] == ["malformed:truncated"]
    assert [asked[2]["max_tokens"] for asked in api.asked] == [8_192, 16_384, 8_192], "room for more, once"
    play = played(api, torn)
    assert play.run.due_at is not None and world == [], "asked again later"
    assert [b["reason"] for b in play.events("ModelFailed")] == ["network"]


def test_a_server_that_wants_us_to_wait_is_left_in_peace_for_as_long(api: Fake) -> None:
    play = played(api, *SCENARIOS["v27_overloaded"])
    (failed,) = play.events("ModelFailed")
    assert failed["reason"] == "overloaded" and play.run.status == "queued"
    assert 1 < failed["retry_at"] / 1e6 - time.time() <= 3.0


MENDED_BY_PEOPLE = {
    "bad_key": ("auth", "invalid x-api-key"),
    "v26_billing": ("billing", "No funds"),
    "v21_refusal": ("refused", "cyber"),
    "v33_too_long": ("context", "prompt is too long"),
    "no_such_model": ("request", "fake-9"),
}


@pytest.mark.parametrize("scenario", MENDED_BY_PEOPLE)
def test_what_only_a_person_can_mend_stops_the_run_and_keeps_what_the_server_said(api: Fake, scenario: str) -> None:
    reason, said = MENDED_BY_PEOPLE[scenario]
    play = played(api, *SCENARIOS[scenario])
    assert play.stop == ("needs_human", reason) and len(api.asked) == 1
    assert said in play.events("ModelFailed")[0]["detail"]


def test_a_window_that_is_full_stops_the_run_at_once(api: Fake) -> None:
    play = played(api, *SCENARIOS["v33_window"])
    assert play.stop == ("needs_human", "context") and len(api.asked) == 1 and world == []


class Spoiler(Scripted):
    """Plays the newest script, and empties what it was given."""

    def complete(self, request: Request, *more: Any) -> Answer:
        answer = super().complete(replace(request, model=f"scripted:{[*self.scripts][-1]}"), *more)
        for message in request.messages:
            message["content"].clear()
        request.messages.clear()
        request.tools.clear()
        return answer


def test_a_provider_that_spoils_what_it_is_given_changes_nothing(api: Fake) -> None:
    PROVIDERS["spoiler"] = Spoiler
    try:
        looks = [says("I look."), wish("look", name="lamp")], [wish("look", name="lamp")]
        play = Play(*looks, finish(SEEN), model="spoiler:x").go()
    finally:
        del PROVIDERS["spoiler"]
    assert play.run.status == "succeeded"
    assert [len(conversation) for conversation in play.requests] == [1, 3, 5]
