"""The frame around every page: whose language, theme and zone it speaks."""

from __future__ import annotations

import re
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
