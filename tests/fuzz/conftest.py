"""The database is seeded once; every scenario is one transaction that is rolled back."""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.fuzz.world import World

# Each scenario has more of one thing than others ("swarm" testing): chance alone rarely meets what is rare.
THEMES = ("", "", "late", "late", "again", "again", "cancel", "expiry", "tamper")


@pytest.fixture(scope="session")
def seeded(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Groups, policy, agents and people, committed."""
    from django.core.management import call_command

    with django_db_blocker.unblock():
        call_command("seed", verbosity=0)
        yield


@pytest.fixture
def scenario(seeded: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``with scenario(seed, kill_at=0) as world``: a world of its own, rolled back at the end."""
    return lambda *args, **options: _scenario(*args, **options)


@contextmanager
def _scenario(seed: str, kill_at: int = 0, agent: str = "") -> Iterator[World]:
    from django.db import connection, transaction

    from tests.fuzz.clock import Clock
    from tests.fuzz.people import People
    from tests.fuzz.remote import Remote, connected
    from tests.fuzz.world import World, playing

    logging.disable(logging.CRITICAL)
    dice = random.Random(f"scenario {seed}")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as after:
        after.callback(logging.disable, logging.NOTSET)
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=dice.getrandbits(128), version=4))
        patch.setattr(connection, "close", lambda: None)  # one connection for everybody, who would each have their own
        atomic = transaction.atomic()
        atomic.__enter__()
        after.callback(lambda: atomic.__exit__(KeyError, KeyError("rolled back"), None))
        clock = Clock(patch)
        remote = after.enter_context(contextmanager(connected)(Remote(clock, random.Random(f"remote {seed}")), patch))
        theme = "corner" if agent else dice.choice(THEMES)
        people = People(random.Random(f"people {seed}"), theme)
        world = after.enter_context(playing(World(seed, clock, remote, people, kill_at)))
        remote.rate = dice.choice((0, 0.15, 0.4))
        if theme == "corner":
            remote.rate, world.troubled = 0.0, False
            world.runs.append(people.start(agent, "O-5001", seed))
            yield world
            return
        if theme == "late":
            remote.kinds, remote.path, remote.rate = ("late", "cut", "reply_lost"), "/pickups", 0.8
        elif theme == "again":
            remote.kinds, remote.path, remote.rate = ("cut", "reply_lost"), "/messages", 0.9
        elif theme == "expiry":
            people.expiring()
        for n in range(dice.choice((1, 1, 2))):
            agent = dice.choice(("medley", "medley", "medley", "refund", "asker", "misbehave-duplicate_id"))
            limits = {"limits": {"turns": 4}} if dice.random() < 0.1 else {}
            world.runs.append(world.people.start(agent, f"O-{5001 + n}", f"{seed}-{n}", **limits))
        yield world
