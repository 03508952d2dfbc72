"""An installation in which nothing has run yet, and what says that it is only for show."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from tests.pages.story import Story, browser


def front(who: str) -> str:
    return str(browser(who).get("/runs").content.decode())


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("operator", "Start your first run in three steps"),
        ("auditor", "You question it"),
        ("admin", "You set its limits"),
    ],
)
def test_an_empty_house_greets_each_with_what_they_can_do(seeded: None, who: str, said: str) -> None:
    page = front(who)
    assert said in page
    assert ("Ask one of them: both, operator, reviewer." in page) is (who != "operator")


def test_a_house_without_agents_says_how_to_bring_some(db: None) -> None:
    operators = Group.objects.create(name="operator")
    User.objects.create(username="operator").groups.add(operators)
    page = front("operator")
    assert "No agents are installed yet" in page and "AGENTOPS_TOOLS=demo" in page


def test_the_greeting_goes_with_the_first_run(seeded: None, service: object) -> None:
    Story()
    assert "three steps" not in front("operator")


def test_every_page_says_that_the_demo_is_a_demo(seeded: None) -> None:
    assert "Demo data" in front("auditor")
