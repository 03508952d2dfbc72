"""Who gets what from every route; a route without a row fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import get_resolver

from runs.actions.bulk import begin
from runs.models import Run
from runs.routing import websocket_urlpatterns
from tests.pages.story import Story, browser, opened, person
from tests.pages.table import PEOPLE, ROUTES, SOCKETS, page
from tests.stack import ROOT

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
        "models": "/models", "model": "/models/anthropic:claude-opus-5-5",
        "person": f"/people/{asked.run.starter_id}",
        "incidents": "/incidents", "incident": f"/incidents/{incident.pk}",
        "admin-door": "/admin/login/", "preferences": "/preferences", "look": "/look",
    }  # fmt: skip


def test_the_page_of_rights_shows_the_table() -> None:
    assert (ROOT / "docs" / "rights.md").read_text() == page(), "write it with: python -m tests.pages.table"


def test_every_route_has_a_row() -> None:
    assert names() - OTHERS - {"run-act"} == {name for name in ROUTES if ":" not in name}


def test_every_socket_has_a_row() -> None:  # who gets what of it: test_sockets
    assert {str(route.pattern).replace("<int:run_id>", "RUN") for route in websocket_urlpatterns} == set(SOCKETS)


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
