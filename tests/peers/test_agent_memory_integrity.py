"""`agent-memory-integrity`: its nine edits on the raw store, and who notices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT
from agmi.check import verdict

from runs.models import Policy

if TYPE_CHECKING:
    from tests.peers.store import Store

pytestmark = pytest.mark.django_db
EDITS = {attack.name: attack for attack in AT_REST_ATTACKS_WITH_SNAPSHOT}
# A whole database that was put back is sound in itself: only a head outside tells its age.
OUTSIDE = {"snapshot_rollback"}
# A new event at the end, chained as the journal would: a head outside holds the past, not who writes next.
AS_GENUINE = {"forge"}


@pytest.fixture(autouse=True)
def house(db: None) -> None:
    """A policy; nothing of it matters here."""
    from runs.journal import gate
    from tests.stories import playing

    if not Policy.objects.exists():
        playing.first_policy()
    gate.current_policy(fresh=True)


def found(edit: str, store: Store) -> tuple[str, str]:
    """The suite's word for it, and the reason."""
    result = EDITS[edit]().run(store)
    assert result.error is None and result.guard is None, f"{result.error or result.guard}"
    return verdict(result, store), result.detail


def test_the_suite_has_nine_edits() -> None:
    assert len(EDITS) == 9


@pytest.mark.parametrize("edit", EDITS)
def test_a_worker_finishes_nothing_on_an_edited_record(edit: str) -> None:
    from tests.peers.store import Worker

    said, why = found(edit, Worker())
    assert said == ("ACCEPTED" if edit in OUTSIDE else "REJECTED"), why


@pytest.mark.parametrize("edit", EDITS)
def test_the_chain_of_a_run_shows_every_edit_but_a_whole_older_database(edit: str) -> None:
    from tests.peers.store import Audit

    said, why = found(edit, Audit())
    assert said == ("ACCEPTED" if edit in OUTSIDE else "REPORTED"), why


@pytest.mark.parametrize("edit", EDITS)
def test_with_heads_outside_every_edit_is_seen(edit: str, settings: Any, tmp_path: Path) -> None:
    from tests.peers.store import Audit

    settings.AGENTOPS_HEADS = tmp_path
    said, why = found(edit, Audit(tmp_path))
    assert said == "REPORTED", why


@pytest.mark.parametrize("edit", EDITS)
def test_who_chains_everything_again_is_seen_with_heads_outside_alone(edit: str, settings: Any, tmp_path: Path) -> None:
    from tests.peers.store import Careful

    settings.AGENTOPS_HEADS = tmp_path
    assert found(edit, Careful())[0] == "ACCEPTED", "the chain has no key in it"
    said, why = found(edit, Careful(tmp_path))
    assert said == ("ACCEPTED" if edit in AS_GENUINE else "REPORTED"), why
