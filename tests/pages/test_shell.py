"""The frame around every page: whose language, theme and zone it speaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.pages.story import browser, person


def choose(name: str, **what: Any) -> None:
    from runs.models import Preference

    Preference.objects.update_or_create(person=person(name), defaults=what)


def top(client: Any, path: str = "/", **headers: str) -> str:
    return str(re.search("<html[^>]*>", client.get(path, **headers).content.decode())[0])  # type: ignore[index]


def test_the_language_is_the_person_s_then_the_cookie_s_then_the_browser_s(seeded: None) -> None:
    client = browser("operator")
    assert top(client) == '<html lang="en">'
    assert top(client, HTTP_ACCEPT_LANGUAGE="fr, zh-CN;q=0.8, en;q=0.5") == '<html lang="zh-Hans">'
    client.cookies["agentops-language"] = "en"
    assert top(client, HTTP_ACCEPT_LANGUAGE="zh-CN") == '<html lang="en">'
    choose("operator", language="zh-hans")
    assert top(client) == '<html lang="zh-Hans">'
    assert top(browser("reviewer")) == '<html lang="en">'


def test_the_theme_comes_with_the_page_so_that_nothing_flashes(seeded: None) -> None:
    client = browser()
    client.cookies["agentops-theme"] = "dark"
    assert 'data-theme="dark"' in top(client, "/sign-in")
    client.cookies["agentops-theme"] = "'><script>"
    assert "data-theme" not in top(client, "/sign-in")
    choose("auditor", theme="light")
    assert 'data-theme="light"' in top(browser("auditor"))


@pytest.mark.parametrize("nonsense", ["../../etc/passwd", "Mars/Olympus", "", "x" * 500, "/etc/localtime"])
def test_a_zone_that_is_none_is_utc(nonsense: str) -> None:
    from runs.queries.preferences import from_browser

    assert from_browser({"agentops-zone": nonsense}).zone == ""


def test_times_stand_in_the_viewer_s_zone_with_utc_in_the_title() -> None:
    from runs.queries.preferences import Preferences
    from runs.templatetags.pages import clock, moment, stamp

    now = datetime.now(UTC).replace(microsecond=0)
    us = int(now.timestamp()) * 1_000_000
    east = now.astimezone(ZoneInfo("Asia/Shanghai"))
    old = int(datetime(2019, 12, 31, 23, 30, 5, tzinfo=UTC).timestamp()) * 1_000_000
    with Preferences(zone="Asia/Shanghai").spoken():
        utc = f'<time datetime="{now:%Y-%m-%dT%H:%M:%S}.000+00:00" title="{now:%Y-%m-%d %H:%M:%S} UTC">'
        assert moment(us) == f"{utc}{east:%H:%M}</time>"
        assert f">{east:%H:%M:%S}<" in clock(us)
        assert ">1 Jan 2020<" in moment(old) and ">2020-01-01 07:30:05<" in stamp(old)
    yesterday = moment(us - 86_400_000_000)
    assert f" {now:%H:%M}<" in yesterday, "a day stands before the time"
    assert moment(None) == moment(0) == ""


@pytest.fixture
def no_database(seeded: None) -> Iterator[None]:
    """Whoever asks the database hears that it is away."""
    from django.db import OperationalError, connection

    def away(*_args: Any) -> None:
        raise OperationalError("the database is away")

    with connection.execute_wrapper(away):
        yield


@pytest.mark.usefixtures("no_database")
def test_a_failure_has_a_page_with_an_id_though_the_database_is_away() -> None:
    from django.test import Client

    client = Client(raise_request_exception=False)
    client.cookies["session-8000"] = "x" * 32
    client.cookies["agentops-theme"] = "dark"
    answer = client.get("/runs", HTTP_ACCEPT_LANGUAGE="zh")
    page = answer.content.decode()
    assert answer.status_code == 500 and "req-" in page and 'data-theme="dark"' in page and 'lang="zh-Hans"' in page


def test_an_address_that_is_none_keeps_the_way_back_for_those_who_may_see(seeded: None) -> None:
    answer = browser("operator").get("/nowhere")
    assert answer.status_code == 404 and 'class="nav"' in answer.content.decode()
    assert 'class="nav"' not in browser("stranger").get("/nowhere").content.decode()
    assert 'class="nav"' not in browser().get("/nowhere").content.decode()


def test_a_refusal_names_who_could_help(seeded: None) -> None:
    assert "Admins here: admin, both" in browser("auditor").get("/runs/new").content.decode()


def test_the_switches_hold_before_and_after_signing_in(seeded: None) -> None:
    from runs.models import Preference

    client = browser()
    answer = client.post("/look", {"language": "zh-hans", "next": "/sign-in?next=/runs"})
    assert answer.status_code == 302 and answer.headers["Location"] == "/sign-in?next=/runs"
    assert top(client, "/sign-in") == '<html lang="zh-Hans">'
    mine = browser("operator")
    assert mine.post("/look", {"theme": "dark", "next": "https://evil.example/"}).headers["Location"] == "/"
    assert Preference.objects.get(person=person("operator")).theme == "dark"
    assert mine.post("/look", {"theme": ""}).status_code == 302 and "data-theme" not in top(mine)
    assert mine.post("/look", {"theme": "pink"}).status_code == 422
    quick = mine.post("/look", {"theme": "light"}, HTTP_HX_REQUEST="true")
    assert quick.status_code == 204 and '"theme": "light"' in quick.headers["HX-Trigger"]


def test_preferences_are_kept_with_the_person(seeded: None) -> None:
    form = {"language": "zh-hans", "theme": "light", "zone": "Asia/Shanghai", "notify": "on"}
    assert browser("auditor").post("/preferences", form).status_code == 302
    page = browser("auditor").get("/preferences").content.decode()
    assert '<html lang="zh-Hans" data-theme="light" data-keys="off" data-notify>' in page
    assert '<option value="Asia/Shanghai" selected>' in page
    assert browser("auditor").post("/preferences", form | {"zone": "Mars/Olympus"}).status_code == 422


def test_every_page_says_how_much_waits_and_what_is_switched_off(seeded: None) -> None:
    from runs.actions.policies import publish
    from runs.models import Policy
    from tests.pages.story import Story

    Story("quitter").go()
    page = browser("operator").get("/health").content.decode()
    assert "<title>(1) " in page and "1 item waits for you" in page and "/ws/shell/" in page
    theirs = browser("auditor").get("/health").content.decode()
    assert "<title>(1) " not in theirs and "1 item waits for a person" in theirs
    for off, told in (["refund_order"], "1 tool off"), (["*"], "All tools are switched off."):
        policy = Policy.objects.get(current=True)
        publish(person("admin"), policy.content | {"off": off}, "Something is wrong.", policy.number)
        assert told in " ".join(browser("auditor").get("/health").content.decode().split())


def test_a_page_costs_the_same_queries_whatever_waits(seeded: None) -> None:
    from tests.pages.story import Story, counted

    client = browser("operator")
    client.get("/health")
    with counted() as few:
        client.get("/health")
    for _again in range(3):
        Story("quitter").go()
    with counted() as many:
        client.get("/health")
    assert len(few) == len(many)
