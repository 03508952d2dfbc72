"""Incidents: both sides are shown, and a person closes them with what was found."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import connection

from runs.actions import runs as acts
from runs.journal.verify import verify
from runs.models import Event, Incident, Run
from runs.runner.answers import add_late
from runs.runner.flights import Flight
from runs.tools.base import Kind, Outcome
from tests.pages.story import Story, browser, counted, opened


def test_an_incident_is_shown_in_the_frame_on_its_run_and_on_a_page_of_its_own(asked: Story) -> None:
    assert "is open" not in browser("operator").get("/").content.decode(), "no number for what does not exist"
    incident = opened(asked)
    for path in ("/", asked.page, "/incidents", f"/incidents/{incident.pk}"):
        page = browser("auditor").get(path).content.decode()
        assert 'href="/incidents"' in page and ", 1 is open" in page, path
    page = browser("auditor").get(f"/incidents/{incident.pk}").content.decode()
    assert "it turned out ok" in page and "Refund €80.00" in page and "Operators and admins close incidents." in page
    assert f"/incidents/{incident.pk}" in browser("auditor").get(asked.page).content.decode()


def test_a_person_closes_it_with_what_was_found_once(asked: Story) -> None:
    incident = opened(asked)
    place = f"/incidents/{incident.pk}"
    empty = browser("reviewer").post(place, {"what": " "})
    assert empty.status_code == 422
    assert browser("reviewer").post(place, {"what": "The bank says that it was paid."}).status_code == 302
    again = browser("admin").post(place, {"what": "I was late."})
    assert again.status_code == 409 and "reviewer has already closed" in again.content.decode()
    assert "reviewer closed it." in again.content.decode() and "I was late." not in again.content.decode()
    event = Event.objects.get(run=asked.run, kind="IncidentClosed")
    assert event.person.username == "reviewer" and "The bank says" in event.body
    assert verify(Run.objects.get(pk=asked.run.pk)) == []
    assert "No incident is open" in browser("admin").get("/incidents").content.decode()
    listed = browser("admin").get("/incidents?status=all").content.decode()
    assert "The bank says that it was paid." in listed and "Refund €80.00" in listed
    on_its_run = browser("auditor").get(asked.page).content.decode()
    assert "Incident, closed by reviewer:" in on_its_run and place in on_its_run


def test_a_page_behind_the_last_does_not_say_that_nothing_is_open(asked: Story) -> None:
    incident = opened(asked)
    page = browser("auditor").get(f"/incidents?before={incident.pk}").content.decode()
    assert "No older incident is open" in page and "No incident is open" not in page


def test_both_sides_stand_beside_each_other(unknown: Story) -> None:
    what_happened = {"verdict": "not_happened", "reference": "", "why": "The outbox looks empty."}
    assert browser("operator").post(unknown.place, what_happened).status_code == 302
    call = unknown.call
    flight = Flight(
        call.ordinal, "run", lambda flight: None, 5, effect=True, turn=call.turn, revision=1, key=call.key,
        args=call.arguments, result=Outcome(kind=Kind.OK, effect_ref="M-1"),
    )  # fmt: skip
    add_late(unknown.run.pk, flight)
    incident = Incident.objects.get(run=unknown.run)
    page = browser("auditor").get(f"/incidents/{incident.pk}").content.decode()
    held, found = page.index("What was on record"), page.index("What was found")
    assert held < page.index("is settled: it did not happen (a person says so)") < found
    assert "The outbox looks empty." in page[held:found]
    assert found < page.index("late news: it happened") < page.index("How the call stands now")


def test_what_is_about_the_record_itself_is_closed_by_an_admin(asked: Story) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET state = '{' WHERE id = %s", [asked.run.pk])
    for _ in range(2):  # the second time, the run is stopped already
        acts.cancel(asked.run.pk, User.objects.get(username="operator"))
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_run SET state = '{' WHERE id = %s", [asked.run.pk])
    incident = Incident.objects.get(run=asked.run)
    place = f"/incidents/{incident.pk}"
    assert incident.ordinal == 0
    shown = browser("operator").get(place).content.decode()
    assert "A stored row was not what the record says." in shown and "An admin closes what is about" in shown
    assert browser("operator").post(place, {"what": "Nothing to see."}).status_code == 403
    assert browser("admin").post(place, {"what": "A script wrote to the table."}).status_code == 302
    assert "A script wrote to the table." in browser("admin").get(place).content.decode()


def test_a_list_of_incidents_costs_the_same_however_long_it_is(asked: Story) -> None:
    opened(asked)
    with counted() as one:
        browser("auditor").get("/incidents")
    Story("asker").go()
    other = Story("messenger", inputs={"order_id": "O-1043", "text": "Hello."}).go()
    opened(other)
    with counted() as two:
        browser("auditor").get("/incidents")
    assert len(one) == len(two)
