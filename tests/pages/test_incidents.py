"""Incidents: both sides are shown, and a person closes them with what was found."""

from __future__ import annotations

from runs.journal.verify import verify
from runs.models import Event, Run
from tests.pages.story import Story, browser, counted, opened


def test_an_incident_is_shown_in_the_frame_on_its_run_and_on_a_page_of_its_own(asked: Story) -> None:
    assert "/incidents" not in browser("operator").get("/").content.decode(), "no place for what does not exist"
    incident = opened(asked)
    for path in ("/", asked.page, "/incidents", f"/incidents/{incident.pk}"):
        page = browser("auditor").get(path).content.decode()
        assert 'href="/incidents"' in page, path
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
    assert "I was late." in again.content.decode() or "closed it" in again.content.decode()
    event = Event.objects.get(run=asked.run, kind="IncidentClosed")
    assert event.person.username == "reviewer" and "The bank says" in event.body
    assert verify(Run.objects.get(pk=asked.run.pk)) == []
    assert "No incident is open" in browser("admin").get("/incidents").content.decode()
    listed = browser("admin").get("/incidents?status=all").content.decode()
    assert "The bank says that it was paid." in listed


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
