"""What was held to be true and turned out not to be: the list, and one with both sides of the contradiction."""

from dataclasses import dataclass
from typing import Any

from runs.models import Call, Incident
from runs.queries import words
from runs.queries.facts import Note
from runs.queries.timeline import notes_of
from runs.queries.viewer import Viewer

PAGE = 50


def count() -> int:
    """How many are open."""
    return Incident.objects.filter(closed_at=None).count()


@dataclass
class IncidentList:
    """A page of incidents, newest first, each with what its call was to do; `older` is the id to go on from."""

    rows: list[tuple[Incident, str]]
    open: int
    all: int
    older: int | None


def incident_list(status: str = "open", before: int | None = None) -> IncidentList:
    """Keyset pages of `PAGE`; `status` is open or all."""
    found = _with_run().order_by("-pk")
    if status == "open":
        found = found.filter(closed_at=None)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: PAGE + 1])
    shown = rows[:PAGE]
    places = [(row.run_id, row.turn, row.ordinal) for row in shown]
    calls = {call.pk: words.headline(call.tool, call.values()) for call in Call.objects.filter(pk__in=places)}
    headlines = [calls.get(place, "") for place in places]
    older = rows[PAGE - 1].pk if len(rows) > PAGE else None
    return IncidentList(list(zip(shown, headlines, strict=True)), count(), Incident.objects.count(), older)


def _with_run() -> Any:
    return Incident.objects.select_related("run__agent_version__agent", "run__starter", "person")


@dataclass
class Sheet:
    """One incident: the call that it is about, if any, and everything that the record says of that call.

    `held` is what was on record of it, `found` the news that came late.
    """

    incident: Incident
    call: Call | None
    headline: str
    sign: words.Sign | None
    held: Note | None
    found: Note | None
    history: list[Note]
    may_close: bool


def incident_sheet(incident_id: int, viewer: Viewer) -> Sheet | None:
    """The incident with this id, or None."""
    incident = _with_run().filter(pk=incident_id).first()
    if incident is None:
        return None
    place = {"run": incident.run_id, "turn": incident.turn, "ordinal": incident.ordinal}
    call = Call.objects.filter(**place).first() if incident.ordinal else None
    about = incident.run_id, incident.turn, incident.ordinal
    held = _last(notes_of(*about, kinds=("CallEnded", "CallSettled")), incident.seq) if call else None
    found = _last(notes_of(*about, kinds=("LateEvidence",)), incident.seq) if call else None
    return Sheet(
        incident, call, words.headline(call.tool, call.values()) if call else "",
        words.call_sign(call.status, call.outcome, call.tool) if call else None,
        held, found, notes_of(*about) if call else [],
        incident.closed_at is None and viewer.may(incident.closed_by),
    )  # fmt: skip


def _last(notes: list[Note], before: int) -> Note | None:
    """The last of these that stood on record when event `before` was written."""
    return next((note for note in reversed(notes) if note.seq < before), None)
