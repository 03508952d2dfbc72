"""Fields, constraints and small properties; no workflow. Only `runs.journal` writes runs and what hangs on them."""

from runs.models.access import AccessChange
from runs.models.agents import Agent, AgentVersion
from runs.models.bulk import Bulk, BulkItem
from runs.models.catalogue import Account, Budget, ModelEntry, Spend
from runs.models.health import Heartbeat
from runs.models.incidents import Incident
from runs.models.people import Approval, Decision, Question
from runs.models.policies import Policy
from runs.models.preferences import Preference
from runs.models.record import Checkpoint, Head, SafeMode
from runs.models.runs import Call, CallObject, Event, Run
from runs.models.views import SavedView

__all__ = [
    "AccessChange", "Account", "Agent", "AgentVersion", "Approval", "Budget", "Bulk", "BulkItem", "Call", "CallObject",
    "Checkpoint", "Decision", "Event", "Head", "Heartbeat", "Incident", "ModelEntry", "Policy", "Preference",
    "Question", "Run", "SafeMode", "SavedView", "Spend",
]  # fmt: skip
