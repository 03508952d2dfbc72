"""People: groups change by an admin with a reason, it counts at once, and somebody always stays who can do it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from runs.models import AccessChange
from tests.pages.story import Story, browser, decide, person


def path(name: str) -> str:
    return f"/people/{person(name).pk}"


def groups(name: str) -> set[str]:
    return set(person(name).groups.values_list("name", flat=True))


def test_everybody_reads_who_may_do_what_and_through_which_group(asked: Story) -> None:
    decide(asked, "approve", why="It is broken.")
    page = browser("auditor").get("/people").content.decode()
    assert "reviewer" in page and "none: sees nothing" in page and "Set verdicts, risks, limits" in page
    assert "stranger" in browser("auditor").get("/people?group=none").content.decode()
    page = browser("auditor").get(path("reviewer")).content.decode()
    assert "as Operator" in page and "needs Admin" in page and "It is broken." in page
    assert "Record the change" not in page


def test_an_admin_changes_groups_and_it_counts_from_the_next_act_on(asked: Story) -> None:
    change = {"groups": ["auditor"], "active": "1", "why": "Moves to audit."}
    assert browser("operator").post(path("reviewer"), change).status_code == 403
    assert browser("admin").post(path("reviewer"), change | {"why": " "}).status_code == 422
    assert browser("admin").post(path("reviewer"), change).status_code == 302
    assert groups("reviewer") == {"auditor"}
    row = AccessChange.objects.get()
    assert (row.author, row.was, row.became, row.reason) == (
        person("admin"),
        ["operator"],
        ["auditor"],
        "Moves to audit.",
    )
    assert decide(asked, "approve").status_code == 403
    page = browser("auditor").get(path("reviewer")).content.decode()
    assert "operator → auditor" in page and "Moves to audit." in page
    with pytest.raises(DatabaseError), transaction.atomic():
        AccessChange.objects.update(reason="nicer")


def test_who_is_deactivated_is_out_at_once(asked: Story) -> None:
    mine = browser("reviewer")
    assert mine.get("/").status_code == 200
    off = {"groups": ["operator"], "why": "Left us."}
    assert browser("admin").post(path("reviewer"), off).status_code == 302
    assert mine.get("/").status_code == 302 and not User.objects.get(username="reviewer").is_active
    assert "deactivated" in browser("admin").get(path("reviewer")).content.decode()


def test_the_last_admin_stays(seeded: None) -> None:
    leaving = {"groups": ["operator"], "active": "1", "why": "I am tired."}
    assert browser("admin").post(path("admin"), leaving).status_code == 302, "another one is there"
    answer = browser("both").post(path("both"), leaving)
    assert answer.status_code == 409 and "both is the last admin" in answer.content.decode()
    assert "I am tired." in answer.content.decode()
    gone = browser("both").post(path("both"), {"groups": ["admin", "operator"], "why": "Bye."})
    assert gone.status_code == 409 and groups("both") == {"operator", "admin"}


def test_other_groups_of_a_person_are_left_alone_and_an_absent_one_is_404(seeded: None) -> None:
    from django.contrib.auth.models import Group

    person("reviewer").groups.add(Group.objects.create(name="football"))
    browser("admin").post(path("reviewer"), {"groups": ["auditor"], "active": "1", "why": "Both."})
    assert groups("reviewer") == {"auditor", "football"}
    assert browser("admin").get("/people/999999").status_code == 404
    assert browser("admin").post(path("reviewer"), {"groups": ["king"], "active": "1", "why": "No."}).status_code == 422
