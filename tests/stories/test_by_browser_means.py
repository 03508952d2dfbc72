"""The refund and the attest story over HTTP, with sessions and forms as a browser without scripts sends them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stack import Person, until
from tests.stories.people import ENDS, House, an_order


@pytest.fixture
def people(house: House) -> Iterator[dict[str, Person]]:
    """All four are signed in, and each through the real form."""
    everyone = {name: house.stack.signed_in(name) for name in ("operator", "reviewer", "auditor", "admin")}
    yield everyone
    for person in everyone.values():
        person.client.close()


def start(person: Person, agent: str, **fields: str) -> tuple[int, Any]:
    """Fill in the form of a new run and send it; the number of the run, and what was sent."""
    page = person.get(f"/runs/new/{agent}").text
    key = re.search(r'name="request_key" value="([0-9a-f]+)"', page)
    assert key, page[:500]
    sent = {"request_key": key[1], "goal": "Help the customer.", "fact_customer": "C-7", **fields}
    answer = person.post(f"/runs/new/{agent}", sent)
    assert answer.status_code == 302, answer.text[:2000]
    return int(answer.headers["Location"].rpartition("/")[2]), sent


def test_a_refund_is_started_by_one_approved_by_another_and_seen_by_all(
    house: House, people: dict[str, Person]
) -> None:
    order = an_order()
    run, sent = start(people["operator"], "refund", input_order_id=order, input_amount="80.00", input_reason="Broken.")
    again = people["operator"].post("/runs/new/refund", sent)
    assert again.headers["Location"].endswith(f"/{run}"), "the form sent twice starts one run"
    approval = house.approval(run)
    assert f"Refund €80.00 on order {order}" in people["reviewer"].get("/").text
    place, digest = f"/approvals/{approval['id']}", approval["digest"]
    yes = {"digest": digest, "confirm": "refund_order"}
    assert people["reviewer"].post(f"{place}/approve", {"digest": digest}).status_code == 422, "high risk: typed"
    assert digest in people["reviewer"].get(place).text
    assert people["operator"].post(f"{place}/approve", yes).status_code == 403, "who started it"
    assert people["auditor"].post(f"{place}/approve", yes).status_code == 403
    assert people["reviewer"].post(f"{place}/approve", yes | {"digest": "0" * 64}).status_code == 412
    forged = people["reviewer"].client.post(f"{place}/approve", data=yes)
    assert forged.status_code == 403, "a form of another site"
    assert house.approvals(run) == [approval], "nothing of it was a decision"
    assert people["reviewer"].post(f"{place}/approve", yes | {"why": "It is broken."}).status_code == 302
    assert house.reached(run, *ENDS) == "succeeded"
    assert people["reviewer"].post(f"{place}/approve", yes).status_code == 302, "no news"
    late = people["operator"].post(f"{place}/reject", {"digest": digest, "why": "No.", "then": "continue"})
    assert late.status_code == 409 and "reviewer" in late.text and "already approved" in late.text
    (effect,) = house.effects_of(run)
    for name in people:
        page = people[name].get(f"/runs/{run}").text
        assert "80.00 EUR of order" in page and "reviewer" in page and effect["object"] in page, name


def test_a_message_in_doubt_is_attested_on_its_page(house: House, people: dict[str, Person]) -> None:
    run, _ = start(
        people["operator"], "messenger", input_order_id=(order := an_order()), input_text="It is on its way."
    )
    house.stack.faults.arm("reply_lost", path="/messages", contains=order)
    approval = house.approval(run)
    people["reviewer"].post(f"/approvals/{approval['id']}/approve", {"digest": approval["digest"]})
    house.reached(run, "needs_human")
    (effect,) = house.effects_of(run)
    place = f"/runs/{run}/calls/1.1/attest"
    assert place in people["reviewer"].get("/").text, "in the inbox"
    said = {"verdict": "happened", "reference": effect["object"], "why": "It is in the outbox."}
    assert people["auditor"].post(place, said).status_code == 403
    assert people["reviewer"].post(place, said | {"why": ""}).status_code == 422
    assert people["reviewer"].post(place, said).status_code == 302
    assert house.reached(run, *ENDS) == "succeeded"
    assert people["operator"].post(place, said | {"verdict": "again"}).status_code == 409
    assert len(house.effects_of(run)) == 1
    until(lambda: effect["object"] in people["auditor"].get(f"/runs/{run}").text, what="the reference is on the page")
