"""The page of a run, its events, and what people may do to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.actions import runs as acts
from runs.actions.acting import Refused, need
from runs.actions.catalogue import raise_budget
from runs.forms import acts as forms
from runs.forms.base import Styled
from runs.journal.lease import now
from runs.models import Run
from runs.queries import run_export
from runs.queries import runs as queries
from runs.queries.run_search import ACTORS, KINDS, STATES, Search, next_after, tools_of
from runs.queries.timeline import Timeline, card_at, timeline
from runs.queries.timeline import found as matching
from runs.queries.waterfall import waterfall
from runs.views.access import absent, number, page, show
from runs.views.files import as_file

VIEWS = {
    "list": gettext_lazy("List"),
    "waterfall": gettext_lazy("Waterfall"),
    "decisions": gettext_lazy("Decisions"),
    "raw": gettext_lazy("Raw"),
}


@page()
def run(request: Any, run_id: int) -> HttpResponse:
    """A run: its head, what it waits for, and its timeline as a list, what people decided, or the bare record.

    `?at=` opens the window around an event, `?before=` what came before one; the rest is `run_search.Search`.
    """
    found = queries.find_run(run_id)
    if found is None:
        raise absent()
    view = request.GET.get("view") if request.GET.get("view") in VIEWS else "list"
    context: dict[str, Any] = {
        "run": found,
        "head": queries.head(found, request.viewer),
        "note": forms.NoteForm(),
        "view": view,
    }
    context |= {"views": VIEWS.items()} | _timeline(request, found, view)
    if view == "raw":
        context["raw"] = queries.raw(found, number(request, "before"))
    if view == "waterfall":
        context["waterfall"] = waterfall(found, context["timeline"].cards, now())
    return show(request, "run/page.html", context)


def _timeline(request: Any, found: Run, view: str) -> dict[str, Any]:
    """The cards that are asked for; `live` where they end with the newest, so that new ones may join them."""
    before, at = number(request, "before"), number(request, "at")
    search = {"decisions": Search(kind="decision"), "list": Search.of(request.GET)}.get(view, Search())
    if view == "raw":
        return {"timeline": Timeline([], found.seq), "search": search, "live": False}
    if search.given:
        cards, live = matching(found, search.narrow(found), before), False
    else:
        cards = timeline(found, before=before, around=at)
        live = view == "list" and before is None and cards.newer is None
    choices = {
        "kinds": [(name, word) for name, (word, _kinds) in KINDS.items()],
        "states": [(name, word) for name, (word, _where) in STATES.items()],
        "actors": ACTORS.items(), "tools": tools_of(found),
    }  # fmt: skip
    return {"timeline": cards, "search": search, "live": live, "at": at} | choices


@page()
def next_landmark(request: Any, run_id: int, landmark: str) -> HttpResponse:
    """Go to the next error, or decision, after event `?after=`; from the last one back to the first."""
    found = queries.find_run(run_id)
    if found is None:
        raise absent()
    seq = next_after(found, landmark, number(request, "after") or 0)
    if seq is None and (seq := next_after(found, landmark, 0)) is not None:
        messages.info(request, _("That was the last one: this is the first again."))
    if seq is None:
        said = {"error": _("Nothing went wrong in this run."), "decision": _("Nobody has decided anything here yet.")}
        messages.info(request, said[landmark])
        return redirect("run", run_id)
    return redirect(f"{reverse('run', args=[run_id])}?at={seq}#{card_at(found, seq)}")


@page()
def export(request: Any, run_id: int, form: str) -> Any:
    """The whole record as a file: `form` is jsonl, which can be checked, or csv, which can be read."""
    found = queries.find_run(run_id)
    if found is None:
        raise absent()
    lines, kind = EXPORTS[form]
    return as_file(request, lines(found), f"{kind}; charset=utf-8", f"R-{found.pk}.{form}")


EXPORTS = {
    "jsonl": (run_export.json_lines, "application/jsonl"),
    "csv": (run_export.csv_lines, "text/csv"),
}


@page()
def event(request: Any, run_id: int, seq: int) -> HttpResponse:
    """The stored data of one event."""
    found = queries.event_payload(run_id, seq)
    if found is None:
        raise absent()
    template = "run/event.html#payload" if request.htmx else "run/event.html"
    return show(request, template, {"event": found})


@dataclass(frozen=True)
class Act:
    """One thing that a person may do to a run: its right, its form, how it is done, and what it says beforehand."""

    right: str
    form: type[Styled]
    do: Callable[[int, Any, Mapping[str, Any]], None]
    title: Any
    explains: Any
    button: Any
    done: Any


def _extend(run_id: int, person: Any, data: Mapping[str, Any]) -> None:
    given = forms.limits_of({name: data[name] for name in ("turns", "calls", "minutes")})
    if data["budget"] is not None:
        raise_budget(run_id, person, data["budget"], data["why"])
    if given or data["budget"] is None:
        acts.extend_limits(run_id, person, given, data["why"])


ACTS: dict[str, Act] = {
    "note": Act(
        "note", forms.NoteForm, lambda r, p, d: acts.add_note(r, p, d["text"]), gettext_lazy("Leave a note"),
        gettext_lazy("The agent reads it with its next turn; after the end it only goes into the record."),
        gettext_lazy("Leave the note"), gettext_lazy("The note is in the record."),
    ),
    "pause": Act(
        "steer", Styled, lambda r, p, d: acts.pause(r, p), gettext_lazy("Pause the run"),
        gettext_lazy("Nothing new begins. A call or an answer that is under way is still recorded."),
        gettext_lazy("Pause the run"), gettext_lazy("Paused. What was under way is still recorded."),
    ),
    "resume": Act(
        "steer", Styled, lambda r, p, d: acts.resume(r, p), gettext_lazy("Resume the run"),
        gettext_lazy("It goes on from what is recorded; the counter that stopped it begins again."),
        gettext_lazy("Resume the run"), gettext_lazy("Resumed."),
    ),
    "cancel": Act(
        "steer", forms.Why, lambda r, p, d: acts.cancel(r, p, d["why"]), gettext_lazy("Cancel the run"),
        gettext_lazy("Cancelling is not undoing."), gettext_lazy("Cancel the run"),
        gettext_lazy("Cancelled. What was under way is awaited."),
    ),
    "extend": Act(
        "steer", forms.Extend, _extend, gettext_lazy("Raise the limits"),
        gettext_lazy("Limits can only be raised here. A run that stopped at a limit goes on by itself."),
        gettext_lazy("Raise the limits"), gettext_lazy("The limits are raised."),
    ),
    "give-up": Act(
        "steer", forms.Why, lambda r, p, d: acts.close_failed(r, p, d["why"]), gettext_lazy("Give up on the run"),
        gettext_lazy("It ends as failed and cannot be resumed. What had finished stays as it is."),
        gettext_lazy("End it as failed"), gettext_lazy("The run ended as failed."),
    ),
    "sign-off": Act(
        "sign_off", forms.Found, lambda r, p, d: acts.sign_off(r, p, d["what"]),
        gettext_lazy("Sign off the damaged record"),
        gettext_lazy("Stored data did not match the record. Look with `manage.py verify_audit` before you sign off."),
        gettext_lazy("Sign off"), gettext_lazy("Signed off."),
    ),
}  # fmt: skip


@page("see", "GET", "HEAD", "POST")
def act(request: Any, run_id: int, name: str) -> HttpResponse:
    """Say what an act means; on POST, do it."""
    doing = ACTS[name]
    need(request.user, doing.right)
    found = queries.find_run(run_id)
    if found is None:
        raise absent()
    form = doing.form(request.POST if request.method == "POST" else None)
    refused: Refused | None = None
    if request.method == "POST" and form.is_valid():
        try:
            doing.do(run_id, request.user, form.cleaned_data)
            messages.success(request, doing.done)
            return redirect("run", run_id)
        except Refused as error:
            refused = error
    context: dict[str, Any] = {
        "run": found,
        "act": doing,
        "name": name,
        "form": form,
        "refused": refused,
        "state": found.picture,
    }
    return show(request, "run/act.html", context, refused.status if refused else 422 if form.errors else 200)
