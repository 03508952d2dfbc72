"""The state tables of DESIGN.md 5 as data; the database constraints and docs/states.md repeat them."""

RUN_OPEN = ("queued", "running", "waiting_approval", "waiting_input", "paused", "cancelling")
RUN_STOPS = ("budget_exhausted", "stalled", "needs_human")
RUN_ENDS = ("succeeded", "failed", "cancelled")
RUN = RUN_OPEN + RUN_STOPS + RUN_ENDS

# Why a run stopped, and what a person can do next: a closed list.
STOP_REASONS: dict[str, tuple[str, str]] = {
    "turns": ("budget_exhausted", "Raise the limit of turns, or end the run as failed."),
    "calls": ("budget_exhausted", "Raise the limit of calls, or end the run as failed."),
    "time": ("budget_exhausted", "Raise the limit of active time, or end the run as failed."),
    "budget": (
        "budget_exhausted",
        "Raise the budget that is named, or let its day pass, then resume; or end the run as failed.",
    ),
    "repeats": ("stalled", "Leave a note that says what to do differently and resume, or end the run as failed."),
    "failures": ("stalled", "Read the failed calls, mend the cause and resume, or end the run as failed."),
    "claims": ("needs_human", "Read what the finish lacked, leave a note and resume, or end the run as failed."),
    "refusals": ("needs_human", "People refused several proposals in a row: leave a note and resume, or end the run."),
    "refused": ("needs_human", "The provider refused to answer: change the goal in a new run, or end this one."),
    "auth": ("needs_human", "The provider did not accept the key: mend it and resume."),
    "billing": ("needs_human", "The account at the provider is empty or at its limit: see to it there, then resume."),
    "request": (
        "needs_human",
        "The provider does not take the request: look at the agent's model and settings, then resume, or end the run.",
    ),
    "context": (
        "needs_human",
        "The conversation no longer fits the model: end the run, and begin a new one with a model that takes more.",
    ),
    "model": ("needs_human", "The model gave no usable answer: resume to ask again, or end the run."),
    "crashes": ("needs_human", "Workers died three times without progress: read their logs, then resume."),
    "unknown_effect": ("needs_human", "Find out at the remote what happened and attest it; the run goes on by itself."),
    "give_up": ("needs_human", "The agent gave up and says why: leave a note and resume, or end the run."),
    "integrity": ("needs_human", "Stored data does not match the record: an admin looks and signs off."),
    "restored": (
        "needs_human",
        "The database was restored from a backup: find out what the run did since, leave a note, resume or end it.",
    ),
    "unreadable": ("needs_human", "The run needs code that is not installed here: install it, then resume."),
    "error": ("needs_human", "The host met a bug of its own: read the log under the given id, then resume."),
}

CALL: dict[str, tuple[str, ...]] = {
    "proposed": ("invalid", "denied", "waiting", "ready", "done"),
    "waiting": ("proposed", "ready", "refused", "denied", "invalid", "done", "expired", "withdrawn", "unknown"),
    "ready": ("executing", "waiting", "denied", "expired", "withdrawn", "unknown"),
    "executing": ("done", "unknown", "ready"),
    "unknown": ("done", "ready", "not_executed"),
    **dict.fromkeys(("invalid", "denied", "refused", "expired", "withdrawn", "done"), ()),
    "not_executed": ("done",),
}
CALL_ENDS = ("invalid", "denied", "refused", "expired", "withdrawn", "done", "not_executed")

APPROVAL: dict[str, tuple[str, ...]] = {
    "pending": ("approved", "rejected", "expired", "superseded", "withdrawn"),
    "approved": ("consumed", "expired", "superseded", "withdrawn"),
    **dict.fromkeys(("rejected", "consumed", "expired", "superseded", "withdrawn"), ()),
}
QUESTION: dict[str, tuple[str, ...]] = {"open": ("answered", "withdrawn"), "answered": (), "withdrawn": ()}
OUTCOMES = ("ok", "retryable", "declined", "fatal", "unknown")
EFFECTS = ("read", "repeatable", "keyed", "lookup", "opaque", "host")


class IllegalMove(ValueError):
    """A state was asked to become what its table does not allow: a bug of ours, never data."""


def move(table: dict[str, tuple[str, ...]], old: str, new: str) -> str:
    """`new`, if the table allows it from `old`; raises `IllegalMove` otherwise."""
    if new not in table[old]:
        raise IllegalMove(f"{old} -> {new}")
    return new
