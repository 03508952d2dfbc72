"""Why a run stands as it does, in half a line: what it does or waits for, or what it came to."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.engine.machines import RUN_STOPS
from runs.engine.state import RunState
from runs.models import Call, Run
from runs.queries import words
from runs.queries.display import one_line

IN_HAND = {
    "running": ("executing",),
    "cancelling": ("executing", "unknown"),
    "waiting_approval": ("waiting",),
    "waiting_input": ("waiting",),
    "needs_human": ("unknown", "waiting"),
}
STOPPED: dict[str, Any] = {
    "turns": gettext_lazy("All turns are used: {turns} of {most_turns}. Extend or end it."),
    "calls": gettext_lazy("All calls are used: {calls} of {most_calls}. Extend or end it."),
    "time": gettext_lazy("The limit of active time is used up. Extend or end it."),
    "budget": gettext_lazy("A budget is used up. Raise it or end the run."),
    "repeats": gettext_lazy("It repeated itself without progress."),
    "failures": gettext_lazy("Too many calls failed in a row."),
    "claims": gettext_lazy("It claimed to have finished, and the evidence was missing."),
    "refusals": gettext_lazy("People refused several proposals in a row."),
    "refused": gettext_lazy("The provider refused to answer."),
    "auth": gettext_lazy("The provider did not accept the key."),
    "billing": gettext_lazy("The account at the provider is empty or at its limit."),
    "request": gettext_lazy("The provider does not take the request."),
    "context": gettext_lazy("The conversation no longer fits the model."),
    "model": gettext_lazy("The model gave no usable answer."),
    "crashes": gettext_lazy("Workers died three times without progress."),
    "unknown_effect": gettext_lazy("Nobody knows whether this was done"),
    "give_up": gettext_lazy("The agent gave up and says why."),
    "integrity": gettext_lazy("Stored data does not match the record: an admin looks first."),
    "restored": gettext_lazy("The database was restored: find out what the run did since."),
    "unreadable": gettext_lazy("It needs code that is not installed here."),
    "error": gettext_lazy("The host met a bug of its own."),
}


def calls_in_hand(read: Iterable[tuple[Run, RunState | None]]) -> dict[Any, Call]:
    """The calls that runs are at, by (run, turn, ordinal): one query, none where no run is at any."""
    places = [
        (run.pk, state.turn, ordinal)
        for run, state in read
        if state
        for ordinal in list(state.having(*IN_HAND.get(run.status, ())))[:1]
    ]
    return {call.pk: call for call in Call.objects.filter(pk__in=places)} if places else {}


def cause_of(run: Run, state: RunState | None, calls: dict[Any, Call]) -> str:
    """The half line."""
    if state is None:
        return _("Its state cannot be read here: open it to see why.")
    if run.status in RUN_STOPS and state.stop:
        return _stopped(run, state, calls)
    if run.status in ("succeeded", "cancelled"):
        return _ended(run.status, state)
    at = state.having(*IN_HAND.get(run.status, ()))
    if run.status == "running" and not at:
        return _("Turn {n}: the model is asked.").format(n=max(1, state.turn))
    if not at:
        return str(words.RUN_CAUSE.get(run.status, ""))
    text = _headline(run, state, calls)
    if len(at) > 1:
        more = len(at) - 1
        text += " " + ngettext("and {n} more", "and {n} more", more).format(n=more)
    return text


def _headline(run: Run, state: RunState, calls: dict[Any, Call]) -> str:
    """What the first call in hand is to do; a question is shown as it was asked."""
    for ordinal in state.having(*IN_HAND.get(run.status, ())):
        if (call := calls.get((run.pk, state.turn, ordinal))) is not None:
            if call.tool == "ask_user":
                return one_line(str(call.values().get("question", "")), 120)
            return words.headline(call.tool, call.values())
    return ""


def _stopped(run: Run, state: RunState, calls: dict[Any, Call]) -> str:
    assert state.stop is not None
    figures = {
        "turns": state.n.turns, "most_turns": state.limits.turns, "calls": state.n.calls,
        "most_calls": state.limits.calls,
    }  # fmt: skip
    text = str(STOPPED[state.stop.reason]).format(**figures)
    if state.stop.reason != "unknown_effect":
        return text
    return f"{text}: {what}" if (what := _headline(run, state, calls)) else f"{text}."


def _ended(status: str, state: RunState) -> str:
    if status == "succeeded":
        n = len(state.checks)
        holds = ngettext("The check holds.", "All {n} checks hold.", n).format(n=n)
        return holds if n else _("It finished; no check was set.")
    n = sum(state.effects.values())
    if not n:
        return _("A person cancelled it. Nothing was changed.")
    return ngettext("A person cancelled it. {n} change stays.", "A person cancelled it. {n} changes stay.", n).format(
        n=n
    )
