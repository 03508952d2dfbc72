"""Start and steer runs."""

import uuid
from fnmatch import fnmatchcase
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.actions.acting import Act, Refused, acting, found, need, not_in_safe_mode, refusing, said
from runs.engine import events as e
from runs.engine.canonical import to_json
from runs.engine.limits import BadLimits, Limits
from runs.engine.next_step import unfinished
from runs.engine.state import RunState, dumps
from runs.journal.append import Picture, append
from runs.journal.gate import current_policy
from runs.journal.lease import now
from runs.models import AgentVersion, Incident, ModelEntry, Run
from runs.providers import lacking

BUDGETS = ("turns", "calls", "time")


def start_run(
    *,
    starter: User,
    agent_version: AgentVersion,
    goal: str,
    inputs: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    unattended: bool = False,
    request_key: str = "",
    model: str = "",
) -> Run:
    """Start a run; the same `request_key` again returns the run that it started.

    `model` is another than the version's own, of those that it allows and the catalogue offers.
    `inputs` and `facts` are name -> value; the trust of an input is the agent version's, the source of a fact the
    starter. Raises `Refused`.
    """
    need(starter, "start")
    not_in_safe_mode()
    definition = agent_version.definition
    opening: dict[str, Any] = {
        "goal": said(goal, 20_000, empty="Say what the run is to reach: the goal is empty."),
        "inputs": _inputs(definition, inputs or {}),
        "facts": {name: {"value": value, "source": "starter"} for name, value in (facts or {}).items()},
    }
    opening |= _chosen(definition, model)
    wanted = {"probes": settings.AGENTOPS_PROBES} | definition.get("limits", {}) | (limits or {})
    with refusing(BadLimits):
        bounds = Limits.load(wanted)
    fact = e.RunStarted(
        agent_version.identity, opening["goal"], bounds.dump(), definition.get("acceptance", []), starter.pk,
        unattended, current_policy(fresh=True).number,
    )  # fmt: skip
    try:
        return _create(starter, agent_version, opening, fact, request_key)
    except IntegrityError:
        if request_key and (earlier := Run.objects.filter(request_key=request_key, starter=starter).first()):
            return earlier
        raise


@transaction.atomic
def _create(starter: User, version: AgentVersion, opening: dict[str, Any], fact: e.RunStarted, request_key: str) -> Run:
    clock = now()
    run = Run.objects.create(
        uid=uuid.uuid4().hex, agent_version=version, starter=starter, request_key=request_key or None, started_at=clock,
        state=dumps(RunState()), **opening,
    )  # fmt: skip
    draft = Act(Picture.of(run), clock, starter)
    draft.state_fact(fact, payload=to_json(opening))
    append(draft)
    run.refresh_from_db()
    return run


def _chosen(definition: dict[str, Any], model: str) -> dict[str, str]:
    if model in ("", definition["model"]):
        return {}
    entry = ModelEntry.objects.filter(name=model).order_by("-number").first()
    allowed = any(fnmatchcase(model, pattern) for pattern in definition.get("models", []))
    if not allowed or entry is None or not entry.offered:
        raise Refused("This agent may not be run on {model}.", 422, model=model)
    if knob := lacking(model, settings.AGENTOPS_MODELS):
        raise Refused("{model} cannot be asked: {knob} is not set on this host.", 422, model=model, knob=knob)
    return {"model": model}


def _inputs(definition: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    wanted = {field["name"]: field for field in definition.get("inputs", [])}
    if unknown := sorted(given.keys() - wanted.keys()):
        raise Refused("This agent has no input named {names}.", 422, names=", ".join(unknown))
    lacking = [f.get("label", name) for name, f in wanted.items() if f.get("required", True) and not given.get(name)]
    if lacking:
        raise Refused("Fill in: {names}.", 422, names=", ".join(lacking))
    trust = {name: "trusted" if field.get("trusted") else "untrusted" for name, field in wanted.items()}
    return {name: {"value": value, "trust": trust[name]} for name, value in given.items()}


def add_note(run_id: int, person: User, text: str) -> None:
    """Leave a note: the model reads it with its next turn. Also after the end, for the record."""
    note = e.NoteAdded(said(text, empty="The note is empty."))
    with acting(run_id, person, "note", ended=True, tampered=True) as draft:
        draft.state_fact(note)


def pause(run_id: int, person: User) -> None:
    """Begin nothing new; what flies is still recorded."""
    with acting(run_id, person, "steer") as draft:
        if not draft.state.paused:
            draft.state_fact(e.PauseAsked())


def resume(run_id: int, person: User) -> None:
    """Go on after a pause or a stop; the counter that caused the stop begins again."""
    with acting(run_id, person, "steer") as draft:
        stop = draft.state.stop
        if stop is None and not draft.state.paused:
            raise Refused("The run is neither paused nor stopped.")
        if stop and stop.reason in BUDGETS:
            raise Refused("A limit is used up: extend it first.")
        if stop and stop.reason == "unknown_effect":
            raise Refused("An effect is unknown: attest what happened first; the run then goes on by itself.")
        draft.state_fact(e.Resumed())


def cancel(run_id: int, person: User, why: str = "") -> None:
    """Ask the run to end. Cancelling is not undoing: what flies is awaited, what is unknown is put to a person."""
    with acting(run_id, person, "steer", tampered=True) as draft:
        draft_cancel(draft, why)


def draft_cancel(draft: Act, why: str) -> None:
    """Withdraw what people were asked, and ask for the end."""
    if not draft.state.cancel:
        _withdraw(draft, "the run was cancelled")
        draft.state_fact(e.CancelAsked(said(why)))


def _withdraw(draft: Act, why: str) -> None:
    for ordinal, call in draft.state.having("waiting", "ready").items():
        if call.approval_status in ("pending", "approved"):
            draft.add(e.ApprovalClosed(call.approval, "withdrawn", why), call=ordinal)


def extend_limits(run_id: int, person: User, limits: dict[str, int], why: str = "") -> None:
    """Set limits (`turns`, `calls`, `ms`, ...) to new values; a budget stop goes on by itself."""
    with acting(run_id, person, "steer") as draft:
        with refusing(BadLimits):
            new = Limits.load({**draft.state.limits.dump(), **limits})
        lower = [name for name in limits if getattr(new, name) < getattr(draft.state.limits, name)]
        if lower:
            raise Refused("Limits can only be raised here: {names}.", 422, names=", ".join(lower))
        if new == draft.state.limits:
            raise Refused("Nothing was changed: name a higher limit.", 422)
        draft.state_fact(e.LimitsChanged(new.dump(), said(why)))


def close_failed(run_id: int, person: User, why: str) -> None:
    """Give up on a stopped run: it ends as failed. Not while an effect is unknown."""
    with acting(run_id, person, "steer", tampered=True) as draft:
        if draft.state.stop is None:
            raise Refused("Only a stopped run can be given up; cancel it instead.")
        open_calls = [call for call in draft.state.calls.values() if not call.ended]
        if any(call.maybe_sent or call.status in ("unknown", "executing") for call in open_calls):
            raise Refused("An effect is still unknown: attest what happened first.")
        _withdraw(draft, "the run was given up")
        draft.state_fact(e.RunEnded("failed", said(why) or draft.state.stop.reason, unfinished(draft.state)))


def sign_off(run_id: int, person: User, what: str) -> None:
    """An admin has looked at a run whose stored data failed its check, and says what was found."""
    finding = e.SignedOff(said(what, empty="Say what you found: it goes into the record."))
    with acting(run_id, person, "sign_off", tampered=True) as draft:
        if not draft.state.tampered:
            raise Refused("The run has no integrity stop to sign off.")
        draft.state_fact(finding)


def close_incident(incident_id: int, person: User, why: str) -> Incident:
    """A person has looked into an incident and says what was found; it goes into the record, also after the end.

    What is about the record itself, and not about a call, takes an admin, as a sign-off does. Raises `Refused`.
    """
    need(person, "close_incident")
    incident = found(Incident.objects.all(), incident_id)
    finding = e.IncidentClosed(incident.seq, said(why, empty="Say what you found: it goes into the record."))
    with acting(incident.run_id, person, incident.closed_by, ended=True, tampered=True) as draft:
        incident.refresh_from_db()
        if incident.closed_at:
            raise Refused("{who} has already closed this incident.", who=incident.person)
        draft.state_fact(finding, call=incident.ordinal, turn=incident.turn)
    incident.refresh_from_db()
    return incident
