"""Who gets what from every route; a route without a row fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import get_resolver

from runs.actions.bulk import begin
from runs.models import Run
from tests.pages.story import Story, browser, opened, person

PEOPLE = ("", "stranger", "auditor", "admin", "operator", "reviewer")
ALL = {"": 302, "stranger": 404, "auditor": 200, "admin": 200, "operator": 200, "reviewer": 200}
OPERATORS = ALL | {"auditor": 403, "admin": 403}
NOTERS = ALL | {"admin": 403}
ADMINS = ALL | {"auditor": 403, "operator": 403, "reviewer": 403}
OPEN = dict.fromkeys(PEOPLE, 200)
# By route: what GET answers (None: it is a form's target alone), what an empty POST answers to those who may.
ROUTES: dict[str, tuple[dict[str, int] | None, dict[str, int] | None]] = {
    "sign-in": (OPEN | dict.fromkeys(PEOPLE[1:], 302), OPEN | dict.fromkeys(PEOPLE, 422)),
    "sign-out": (None, dict.fromkeys(PEOPLE, 302)),
    "password": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 422)),
    "preferences": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 302)),
    "look": (None, dict.fromkeys(PEOPLE, 302)),
    "inbox": (ALL, None),
    "runs": (ALL, None),
    "runs-csv": (ALL, None),
    "runs-jsonl": (ALL, None),
    "bulk-new": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "bulk": (ALL, None),
    "bulk-stop": (None, OPERATORS | {"operator": 302, "reviewer": 409}),
    "new": (OPERATORS, None),
    "new-run": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "run": (ALL, None),
    "run-csv": (ALL, None),
    "run-jsonl": (ALL, None),
    "next-error": (ALL | dict.fromkeys(PEOPLE[2:], 302), None),
    "next-decision": (ALL | dict.fromkeys(PEOPLE[2:], 302), None),
    "event": (ALL, None),
    "attest": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 422)),
    "stopped": (ALL, None),
    "save-view": (None, ALL | dict.fromkeys(PEOPLE[2:], 302)),
    "drop-view": (None, ALL | dict.fromkeys(PEOPLE[2:], 404)),
    "approval": (ALL, None),
    "approve": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "reject": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "edit": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "question": (ALL, None),
    "answer": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "incidents": (ALL, None),
    "incident": (ALL, ALL | {"auditor": 403, "admin": 422, "operator": 422, "reviewer": 422}),
    "health": (ALL, None),
    "overview": (ALL, None),
    "agents": (ALL, None),
    "agent": (ALL, None),
    "tools": (ALL, ADMINS | {"admin": 422}),
    "tool": (ALL, ADMINS | {"admin": 422}),
    "policies": (ALL, ADMINS | {"admin": 422}),
    "people": (ALL, None),
    "person": (ALL, ADMINS | {"admin": 422}),
    "safe-mode": (ALL, ADMINS | {"admin": 422}),
    "admin-door": ({"": 302, "stranger": 404} | dict.fromkeys(PEOPLE[2:], 403), None),
    "run-act:note": (NOTERS, NOTERS | {"auditor": 422, "operator": 422, "reviewer": 422}),
    "run-act:pause": (OPERATORS, None),
    "run-act:resume": (OPERATORS, OPERATORS | {"operator": 409, "reviewer": 409}),
    "run-act:cancel": (OPERATORS, None),
    "run-act:extend": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "run-act:give-up": (OPERATORS, OPERATORS | {"operator": 409, "reviewer": 409}),
    "run-act:sign-off": (ADMINS, ADMINS | {"admin": 422}),
}
OTHERS = {"healthz"}  # needs no login; tests/infra


def names() -> set[str]:
    found: set[str] = set()
    for pattern in get_resolver().url_patterns:
        for one in getattr(pattern, "url_patterns", [pattern]):
            if getattr(one, "app_name", "") != "admin" and getattr(one, "name", None):
                found.add(one.name)
    return found


@pytest.fixture
def addresses(asked: Story, service: Any) -> dict[str, str]:
    asker = Story("asker").go()
    incident = opened(asked)
    run = asked.run.pk
    acts = {
        f"run-act:{n}": f"/runs/{run}/{n}"
        for n in ("note", "pause", "resume", "cancel", "extend", "give-up", "sign-off")
    }
    approval = f"/approvals/{asked.approval.pk}"
    many = begin(person=person("operator"), kind="pause", why="", chosen={run: asked.run.status}, request_key="many")
    return acts | {
        "runs-csv": "/runs/export.csv", "runs-jsonl": "/runs/export.jsonl", "bulk-new": "/runs/bulk",
        "bulk": f"/runs/bulk/{many.pk}", "bulk-stop": f"/runs/bulk/{many.pk}/stop",
        "sign-in": "/sign-in", "sign-out": "/sign-out", "password": "/password", "inbox": "/", "runs": "/runs",
        "new": "/runs/new", "new-run": "/runs/new/refund", "run": f"/runs/{run}", "event": f"/runs/{run}/events/1",
        "run-csv": f"/runs/{run}/export.csv", "run-jsonl": f"/runs/{run}/export.jsonl",
        "next-error": f"/runs/{run}/next/error", "next-decision": f"/runs/{run}/next/decision",
        "stopped": f"/runs/{Story('quitter').go().run.pk}/stop", "save-view": "/views",
        "drop-view": "/views/999/delete",
        "attest": asked.place, "approval": approval, "approve": f"{approval}/approve", "reject": f"{approval}/reject",
        "edit": f"{approval}/edit", "question": f"/questions/{asker.question.pk}",
        "answer": f"/questions/{asker.question.pk}/answer", "health": "/health", "safe-mode": "/safe-mode",
        "overview": "/overview", "agents": "/agents", "agent": "/agents/refund", "tools": "/tools",
        "tool": "/tools/refund_order", "policies": "/policies", "people": "/people",
        "person": f"/people/{asked.run.starter_id}",
        "incidents": "/incidents", "incident": f"/incidents/{incident.pk}",
        "admin-door": "/admin/login/", "preferences": "/preferences", "look": "/look",
    }  # fmt: skip


def test_every_route_has_a_row() -> None:
    assert names() - OTHERS - {"run-act"} == {name for name in ROUTES if ":" not in name}


def test_every_person_gets_what_the_table_says(addresses: dict[str, str]) -> None:
    seen = {}
    for route, (get, post) in ROUTES.items():
        for who in PEOPLE:
            if get is not None and (status := browser(who).get(addresses[route]).status_code) != get[who]:
                seen[route, "GET", who] = status
            if get is None and (status := browser(who).get(addresses[route]).status_code) not in (302, 405):
                seen[route, "GET", who] = status
            if post is not None and (status := browser(who).post(addresses[route]).status_code) != post[who]:
                seen[route, "POST", who] = status
            if (
                post is None
                and not route.startswith("run-act")
                and browser(who).post(addresses[route]).status_code != 405
            ):
                seen[route, "POST", who] = 0
    assert seen == {}


def test_an_absent_run_and_a_run_that_one_may_not_see_look_the_same(asked: Story) -> None:
    hidden, absent = browser("stranger").get(asked.page), browser("operator").get("/runs/999999")
    assert hidden.status_code == absent.status_code == 404
    assert "There is nothing here" in hidden.content.decode() and "There is nothing here" in absent.content.decode()
    assert "O-1042" not in hidden.content.decode()


def test_a_refusal_says_which_group_is_needed_and_gives_an_id(seeded: None) -> None:
    page = browser("auditor").get("/runs/new").content.decode()
    assert "This needs the group operator; an admin can add you." in page
    assert "req-" in page


def test_a_stranger_is_led_back_after_signing_in_but_never_to_another_place(seeded: None) -> None:
    someone = person("auditor")
    someone.set_password("right")
    someone.save()
    client = browser()
    assert client.get("/runs").headers["Location"] == "/sign-in?next=/runs"
    form = {"username": "auditor", "password": "right"}
    assert client.post("/sign-in", form | {"next": "https://evil.example/"}).headers["Location"] == "/"
    assert browser().post("/sign-in", form | {"next": "/runs"}).headers["Location"] == "/runs"
    wrong = browser().post("/sign-in", form | {"password": "wrong"})
    assert wrong.status_code == 422 and 'role="alert"' in wrong.content.decode()


def test_the_sign_in_page_names_the_demo_people_and_no_password(seeded: None, settings: Any) -> None:
    page = browser().get("/sign-in").content.decode()
    assert "reviewer" in page and settings.AGENTOPS_DEMO_PASSWORD not in page


def test_a_form_without_its_token_is_refused_with_a_page(asked: Story) -> None:
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(person("reviewer"))
    answer = client.post(f"/approvals/{asked.approval.pk}/approve", {"digest": asked.approval.digest})
    assert answer.status_code == 403 and "This form is too old" in answer.content.decode()
    asked.approval.refresh_from_db()
    assert asked.approval.status == "pending"


def test_django_admin_shows_runs_and_changes_nothing(asked: Story) -> None:
    boss = person("admin")
    boss.is_staff = boss.is_superuser = True
    boss.save()
    client = browser("admin")
    assert client.get("/admin/runs/run/").status_code == 200
    assert client.get(f"/admin/runs/run/{asked.run.pk}/change/").status_code == 200
    assert client.get("/admin/runs/run/add/").status_code == 403
    assert client.post(f"/admin/runs/run/{asked.run.pk}/change/", {"goal": "x"}).status_code == 403
    assert client.post(f"/admin/runs/run/{asked.run.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Run.objects.get(pk=asked.run.pk).goal == asked.run.goal
    assert browser("operator").get("/admin/").status_code == 302
