"""`agentbarrier` against the real thing: every guarantee that AgentOps has a notion of holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agentbarrier.models import ApprovalBarrierProfile, ScenarioResult, ScenarioStatus
from agentbarrier.runner import RunnerOptions, SuiteRunner
from agentbarrier.scenarios import DEFAULT_SCENARIOS

if TYPE_CHECKING:
    from tests.peers.barrier import Subject

ABORTED = {"cancellation": "aborted: cancelled", "timeout": "aborted: deadline"}
SECONDS = 0.8  # what a call may take where the suite lets one time out, and a look-up always
SCENARIOS = [scenario.scenario_id for scenario in DEFAULT_SCENARIOS]
OURS = [name for name in SCENARIOS if name != "delegation"]


def test_the_suite_has_the_scenarios_that_we_speak_of() -> None:
    assert len(SCENARIOS) == 11 and len(OURS) == 10


def verified(scenario: str, **policy: str) -> tuple[ScenarioResult, Subject]:
    from tests.peers.barrier import Subject

    subject = Subject(SECONDS, **policy)
    options = RunnerOptions(
        approval_profile=ApprovalBarrierProfile.PER_ACTION, tool_timeout_seconds=SECONDS, settle_seconds=0.3,
        operation_timeout_seconds=15, scenarios=(scenario,),
    )  # fmt: skip
    (result,) = SuiteRunner(options).verify_sync(subject).results
    assert subject.faults() == []
    return result, subject


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_guarantee_of_agentbarrier(committed: None, scenario: str) -> None:
    result, subject = verified(scenario)
    wanted = ScenarioStatus.PASSED if scenario in OURS else ScenarioStatus.SKIPPED
    assert result.status is wanted, f"{result.detail} {result.finding}"
    if scenario in ABORTED:
        assert subject.details() == [ABORTED[scenario]], "the child was killed, for this reason"


@pytest.mark.parametrize("scenario", ["approval_hold", "rejection", "audit_receipts"])
def test_the_policy_is_what_passes(committed: None, scenario: str) -> None:
    result, subject = verified(scenario, asks="allow")
    assert result.status is ScenarioStatus.ERROR and "nobody was asked" in (result.detail or "")
    assert [event.phase.value for event in result.events].count("committed") == len(subject.details()) > 0
