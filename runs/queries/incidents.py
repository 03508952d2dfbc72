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
    """A page of incidents, newest first; `older` is the id to go on from."""

    rows: list[Incident]
    open: int
    older: int | None


def incident_list(status: str = "open", before: int | None = None) -> IncidentList:
    """Keyset pages of `PAGE`; `status` is open or all."""
    found = _with_run().order_by("-pk")
    if status == "open":
        found = found.filter(closed_at=None)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: PAGE + 1])
    return IncidentList(rows[:PAGE], count(), rows[PAGE - 1].pk if len(rows) > PAGE else None)


def _with_run() -> Any:
    return Incident.objects.select_related("run__agent_version__agent", "run__starter", "person")


@dataclass
class Sheet:
    """One incident: the call that it is about, if any, and everything that the record says of that call."""

    incident: Incident
    call: Call | None
    headline: str
    sign: words.Sign | None
    history: list[Note]
    may_close: bool


def incident_sheet(incident_id: int, viewer: Viewer) -> Sheet | None:
    """The incident with this id, or None."""
    incident = _with_run().filter(pk=incident_id).first()
    if incident is None:
        return None
    place = {"run": incident.run_id, "turn": incident.turn, "ordinal": incident.ordinal}
    call = Call.objects.filter(**place).first() if incident.ordinal else None
    history = notes_of(incident.run_id, incident.turn, incident.ordinal) if call else []
    return Sheet(
        incident, call, words.headline(call.tool, call.values()) if call else "",
        words.call_sign(call.status, call.outcome, call.tool) if call else None, history,
        incident.closed_at is None and viewer.may(incident.closed_by),
    )  # fmt: skip
