"""One sentence per event, for the history of a card; what needs no sentence has none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils.translation import gettext as _

from runs.queries.display import visible
from runs.queries.words import RUN, Sign
from runs.queries.words import advice as advice_on


class EventRow(Protocol):
    """What a sentence is made of."""

    seq: int
    kind: str
    at: int
    person: str
    body: dict[str, Any]
    has_payload: bool


@dataclass
class Note:
    """One line of a history: when, who, what, and in whose words. `payload`: whether stored data can be opened."""

    seq: int
    at: int
    who: str
    text: str
    quote: str = ""
    payload: bool = False


def note_of(row: EventRow) -> Note | None:
    """The sentence of an event."""
    make = SAY.get(row.kind)
    if make is None:
        return None
    text, quote = make(row.body)
    return Note(row.seq, row.at, visible(row.person), visible(text), visible(quote), row.has_payload)


def _judged(b: dict[str, Any]) -> tuple[str, str]:
    if b.get("effect") == "host" and b.get("verdict") == "allow":
        return _("is for the host itself to answer"), ""
    words = {"allow": _("is allowed"), "ask": _("asks a person"), "deny": _("is denied")}
    text = words.get(b.get("verdict", "invalid"), _("is invalid"))
    if b.get("rule") == "default":
        text += _(" by the tool's default in policy {policy}").format(policy=b.get("policy", 0))
    elif b.get("rule"):
        text += _(" by rule {rule} of policy {policy}").format(rule=b["rule"], policy=b.get("policy", 0))
    return text, b.get("why", "")


def _decided(b: dict[str, Any]) -> tuple[str, str]:
    return (_("approved it") if b["vote"] == "approve" else _("rejected it")), b.get("why", "")


def _started(b: dict[str, Any]) -> tuple[str, str]:
    text = _("was started, attempt {n}").format(n=b["attempt"])
    return text + (_(", on the approval") if b.get("via") == "approval" else ""), ""


def _ended(b: dict[str, Any]) -> tuple[str, str]:
    words = {
        "ok": _("came back: done"),
        "declined": _("came back: the remote declined"),
        "unknown": _("did not come back: unknown"),
    }
    text = words.get(b["outcome"], _("came back: failed"))
    if b["outcome"] == "retryable" and b.get("proof"):
        text = _("failed, and it is proven that nothing happened")
    return text, " · ".join(x for x in (b.get("effect_ref", ""), b.get("status", "")) if x)


def _probed(b: dict[str, Any]) -> tuple[str, str]:
    asked = {
        "resend": _("the same request was sent again under its key"),
        "lookup": _("the remote was asked whether it happened"),
    }
    told = {"found": _("found: it happened"), "not_found": _("not found"), "inconclusive": _("nothing could be told")}
    return (
        asked[b["how"]] if b["phase"] == "asked" else told.get(b.get("verdict", ""), _("nothing could be told"))
    ), ""


def _late(b: dict[str, Any]) -> tuple[str, str]:
    words = {"ok": _("late news: it happened"), "declined": _("late news: the remote declined")}
    return words.get(b["outcome"], _("late news: it failed, and nothing happened")), b.get("effect_ref", "")


def _settled(b: dict[str, Any]) -> tuple[str, str]:
    by = _("a person says so") if b["proof"] == "human" else _("by {proof}").format(proof=b["proof"].replace("_", " "))
    done = {"ok": _("is settled: it happened"), "declined": _("is settled: the remote declined")}
    text = {
        "done": done.get(b.get("outcome", ""), _("is settled: it failed")),
        "not_executed": _("is settled: it did not happen"),
        "ready": _("may be sent again"),
    }
    if b.get("presumed"):
        return _("is presumed not to have happened: two look-ups found nothing, and it is looked for again"), ""
    said = [b.get("effect_ref", ""), b.get("why", "")]
    return f"{text.get(b['to'], b['to'])} ({by})", " · ".join(x for x in said if x)


def _stopped(b: dict[str, Any]) -> tuple[str, str]:
    advice = advice_on(b["reason"])
    return _("The host stopped the run: {reason}. {advice}").format(reason=b["reason"], advice=advice), b.get(
        "detail", ""
    )


def _run_ended(b: dict[str, Any]) -> tuple[str, str]:
    ends = {
        "succeeded": _("The run succeeded: every acceptance check holds."),
        "failed": _("The run ended as failed."),
        "cancelled": _("The run ended as cancelled. What had finished stays as it is."),
    }
    return ends[b["status"]], "\n".join([b.get("reason", ""), *b.get("unfinished", [])]).strip()


def _limits(b: dict[str, Any]) -> tuple[str, str]:
    shown = ", ".join(f"{name} {value}" for name, value in b["limits"].items())
    return _("raised the limits: {limits}").format(limits=shown), b.get("why", "")


Say = Callable[[dict[str, Any]], tuple[str, str]]
SAY: dict[str, Say] = {
    "RunStarted": lambda b: (_("started the run under policy {n}").format(n=b["policy"]), b["goal"]),
    "ModelAsked": lambda b: (_("The model was asked, attempt {n}").format(n=b["attempt"]), ""),
    "ModelAnswered": lambda b: (_("The model answered with {n} calls").format(n=b["calls"]), ""),
    "ModelFailed": lambda b: (
        _("No usable answer; nothing of it ran"),
        ": ".join(x for x in (b["reason"], b.get("detail", "")) if x),
    ),
    "CallJudged": _judged,
    "ApprovalRequested": lambda b: (_("waits for a person, asking {n}").format(n=b["n"]), ""),
    "ApprovalClosed": lambda b: (_("the approval was closed: {how}").format(how=b["how"]), b.get("why", "")),
    "Decided": _decided,
    "CallEdited": lambda b: (_("changed the arguments"), b.get("why", "")),
    "CallStarted": _started,
    "CallEnded": _ended,
    "CallProbed": _probed,
    "CallSettled": _settled,
    "QuestionAsked": lambda b: (_("The agent asks"), b["question"]),
    "QuestionAnswered": lambda b: (_("answered"), str(b["answer"])),
    "NoteAdded": lambda b: (_("left a note"), b["text"]),
    "PauseAsked": lambda b: (_("paused the run"), ""),
    "Resumed": lambda b: (_("resumed the run"), ""),
    "CancelAsked": lambda b: (_("cancelled the run"), b.get("why", "")),
    "LimitsChanged": _limits,
    "FinishClaimed": lambda b: (_("claims to have finished"), "\n".join(b["evidence"])),
    "FinishRefused": lambda b: (_("The finish was refused: something is missing"), "\n".join(b["missing"])),
    "RunStopped": _stopped,
    "RunEnded": _run_ended,
    "LateEvidence": _late,
    "IncidentOpened": lambda b: (_("An incident was opened"), b["what"]),
    "IncidentClosed": lambda b: (_("looked into the incident of event {n}").format(n=b["incident"]), b["why"]),
    "SignedOff": lambda b: (_("looked at the damaged record and signed off"), b["what"]),
    "PayloadErased": lambda b: (_("erased the stored data of event {n}").format(n=b["erased"]), ""),
    "SegmentStarted": lambda b: (_("Conversation {n} with the model begins").format(n=b["segment"]), ""),
}
EVENT_SIGNS: dict[str, tuple[str, str]] = {
    "RunStarted": ("quiet", "goal"),
    "NoteAdded": ("accent", "note"),
    "PauseAsked": ("quiet", "pause"),
    "Resumed": ("accent", "play"),
    "CancelAsked": ("quiet", "rejected"),
    "LimitsChanged": ("quiet", "up"),
    "RunStopped": ("unclear", "stop"),
    "IncidentOpened": ("danger", "high"),
    "IncidentClosed": ("quiet", "check"),
    "SignedOff": ("quiet", "check"),
}


def sign_of_run_event(kind: str, body: dict[str, Any]) -> Sign:
    """Mark of an event about the whole run."""
    if kind == "RunEnded":
        return RUN[body["status"]]
    if kind == "RunStopped":
        return RUN.get(body["status"], Sign("", "unclear", "stop"))
    return Sign("", *EVENT_SIGNS.get(kind, ("quiet", "runs")))
