"""A database whose transactions are real: the suites of others want several threads at once.

History cannot be deleted, so nothing is cleaned up between these tests: the database is thrown away at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """The test database, also where no test asks for a transaction (pytest-django would leave it out then)."""
    from django.test.utils import setup_databases, teardown_databases

    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, aliases={"default"})
    yield
    with django_db_blocker.unblock():
        teardown_databases(made, verbosity=0)


@pytest.fixture
def committed(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database without a transaction around the test."""
    with django_db_blocker.unblock():
        yield
