"""The house in which stories happen: the session's stack, with people and armed workers beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack import Stack
from tests.stories.people import House


@pytest.fixture(scope="session")
def the_house(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(stack, tmp_path_factory.mktemp("backstage"))
    yield house
    house.backstage.close()


@pytest.fixture
def house(the_house: House) -> Iterator[House]:
    """For one story; afterwards every run that it started must verify, and its state be the fold of its events."""
    since = the_house.highest()
    yield the_house
    the_house.in_order(since)
