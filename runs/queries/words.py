"""One word, tone and icon per state: never colour alone, and unknown is not failed."""

from typing import Any, NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.catalog import spec
from runs.engine.machines import STOP_REASONS
from runs.engine.toolspec import ToolSpec
from runs.queries.display import visible


class Sign(NamedTuple):
    """How a state is shown."""

    word: Any
    tone: str
    icon: str


RUN: dict[str, Sign] = {
    "queued": Sign(_("Queued"), "quiet", "clock"),
    "running": Sign(_("Running"), "accent", "running"),
    "waiting_approval": Sign(_("Waits for approval"), "caution", "waiting"),
    "waiting_input": Sign(_("Waits for an answer"), "caution", "chat"),
    "paused": Sign(_("Paused"), "quiet", "pause"),
    "cancelling": Sign(_("Cancelling"), "quiet", "clock"),
    "budget_exhausted": Sign(_("Limit reached"), "unclear", "stop"),
    "stalled": Sign(_("Stalled"), "unclear", "stop"),
    "needs_human": Sign(_("Needs a person"), "unclear", "stop"),
    "succeeded": Sign(_("Succeeded"), "positive", "succeeded"),
    "failed": Sign(_("Failed"), "danger", "failed"),
    "cancelled": Sign(_("Cancelled"), "quiet", "rejected"),
}
RUN_CAUSE: dict[str, Any] = {
    "queued": _("A worker takes it as soon as one is free."),
    "running": _("A worker is on it."),
    "waiting_approval": _("A person has to decide before it goes on."),
    "waiting_input": _("The agent asked a question that only a person can answer."),
    "paused": _("A person paused it. Nothing new begins; what was under way is still recorded."),
    "cancelling": _("A person cancelled it. What was under way is awaited; nothing new begins."),
    "succeeded": _("Every acceptance check holds on evidence of this run."),
    "failed": _("A person gave up on it."),
    "cancelled": _("A person cancelled it. Finished calls stay as they are."),
}
CALL: dict[str, Sign] = {
    "proposed": Sign(_("Proposed"), "quiet", "clock"),
    "waiting": Sign(_("Waits for approval"), "caution", "waiting"),
    "question": Sign(_("Waits for an answer"), "caution", "chat"),
    "ready": Sign(_("Ready"), "quiet", "clock"),
    "executing": Sign(_("Running"), "accent", "running"),
    "unknown": Sign(_("Unknown"), "unclear", "unknown"),
    "invalid": Sign(_("Invalid"), "quiet", "rejected"),
    "denied": Sign(_("Denied"), "danger", "denied"),
    "refused": Sign(_("Refused"), "danger", "denied"),
    "expired": Sign(_("Expired"), "quiet", "clock"),
    "withdrawn": Sign(_("Withdrawn"), "quiet", "rejected"),
    "not_executed": Sign(_("Not executed"), "quiet", "rejected"),
}
OUTCOME: dict[str, Sign] = {
    "ok": Sign(_("Succeeded"), "positive", "succeeded"),
    "declined": Sign(_("Declined"), "caution", "rejected"),
    "retryable": Sign(_("Failed"), "danger", "failed"),
    "fatal": Sign(_("Failed"), "danger", "failed"),
    "unknown": Sign(_("Unknown"), "unclear", "unknown"),
    "": Sign(_("Done"), "quiet", "check"),
}
APPROVAL: dict[str, Sign] = {
    "pending": Sign(_("Waits for a decision"), "caution", "waiting"),
    "approved": Sign(_("Approved, not started yet"), "positive", "check"),
    "consumed": Sign(_("Approved and used once"), "positive", "check"),
    "rejected": Sign(_("Rejected"), "danger", "denied"),
    "expired": Sign(_("Expired"), "quiet", "clock"),
    "superseded": Sign(_("Superseded"), "quiet", "rejected"),
    "withdrawn": Sign(_("Withdrawn"), "quiet", "rejected"),
}
RISK: dict[str, Any] = {"high": _("High risk"), "medium": _("Medium risk"), "low": _("Low risk")}
RISK_WORD: dict[str, Any] = {"high": _("High"), "medium": _("Medium"), "low": _("Low")}
EFFECT: dict[str, tuple[Any, Any]] = {
    "read": (_("read only"), _("It changes nothing. After a crash it is read again.")),
    "repeatable": (_("repeat-safe"), _("The same call again leads to the same state, so it may be repeated.")),
    "keyed": (
        _("key-protected"),
        _("The remote honours our key: at most one effect, even if the request has to be sent again."),
    ),
    "lookup": (
        _("findable"),
        _("It is sent once at most. After a crash the host looks for its mark; it never sends it again by itself."),
    ),
    "opaque": (
        _("one shot"),
        _("It is sent once at most and cannot be looked up. After a crash a person says what happened."),
    ),
    "host": (_("host"), _("The host itself answers.")),
}


def call_sign(status: str, outcome: str, tool: str = "") -> Sign:
    """How a call stands."""
    if status == "done":
        return OUTCOME[outcome]
    return CALL["question"] if status == "waiting" and tool == "ask_user" else CALL[status]


def packaged(text: str) -> str:
    """A text that a package of tools wrote for people, in their language if its own `locale` folder has it."""
    return gettext(text) if text else ""


def advice(reason: str) -> str:
    """What a person can do about a stop."""
    return packaged(STOP_REASONS.get(reason, ("", ""))[1])


def headline(tool: str, arguments: dict[str, Any]) -> str:
    """What a call will do, in words made by code from its arguments; never the model's words."""
    found = spec(tool)
    plain = gettext("Run {tool}").format(tool=tool)
    try:
        text = packaged(found.headline).format_map(arguments) if found and found.headline else plain
    except (KeyError, IndexError, ValueError, AttributeError, TypeError):
        text = plain  # an invalid call may lack what its headline names
    return visible(text.replace("\n", " "))


def risk_of(policy: dict[str, Any], tool: str, found: ToolSpec | None) -> str:
    """The risk of a tool: the policy's word, else its own, else high, since nobody can tell."""
    return str(policy.get("risk", {}).get(tool) or (found.risk.value if found else "high"))
