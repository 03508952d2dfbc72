"""A file outside of its own for each test, and a witness that keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from runs.audit.witness import Witness


@pytest.fixture
def witness(db: None, settings: Any, tmp_path: Path) -> Witness:
    from runs.audit.witness import Witness

    settings.AGENTOPS_HEADS = tmp_path
    return Witness()
