"""Pages in this process, on a database of their own: real actions, the real runner, the real demo service.

What needs Django is imported inside: this file is read before Django is set up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.demo.conftest import Service

if TYPE_CHECKING:
    from tests.pages.story import Story


@pytest.fixture(scope="session")
def order_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("pages-service"))
    yield service
    service.end(9)
    service.web.close()


@pytest.fixture
def service(order_service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The order service, back on its first day."""
    order_service.web.post(order_service.url + "/admin/faults", data={"do": "start_over"})
    monkeypatch.setenv("DEMO_SERVICE_URL", order_service.url)
    return order_service


@pytest.fixture
def seeded(db: None, settings: Any) -> None:
    """Groups, policy, agents, people. Their passwords cost nothing here: nobody guesses them."""
    from tests.pages.story import seed

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    seed()


@pytest.fixture
def asked(seeded: None, service: Service) -> Story:
    """A refund that waits for a person who did not start it."""
    from tests.pages.story import Story

    story = Story().go()
    assert story.run.status == "waiting_approval"
    return story


@pytest.fixture
def unknown(seeded: None, service: Service) -> Story:
    """A message of which nobody knows whether it was sent."""
    from tests.pages.story import Story, decide

    service.arm("reply_lost", path="/messages", times=1)
    story = Story("messenger", inputs={"order_id": "O-1042", "text": "Hello."}).go()
    assert decide(story, "approve").status_code == 302
    story.go()
    assert story.call.status == "unknown"
    return story


@pytest.fixture
def questioned(seeded: None, service: Service) -> Story:
    """A run that asked a person a question."""
    from tests.pages.story import Story

    story = Story("asker").go()
    assert story.run.status == "waiting_input"
    return story
