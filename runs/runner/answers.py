"""From what landed to facts: an answer of the model and its judged calls, outcomes, verdicts of probes."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import Q

from runs.catalog import catalog, spec
from runs.engine import acceptance, machines, messages
from runs.engine import events as e
from runs.engine.canonical import digest, storable, to_json
from runs.engine.limits import SECOND
from runs.engine.toolspec import InvalidArguments, ToolSpec
from runs.journal import budgets, gate
from runs.journal.append import Draft, append
from runs.journal.integrity import Tampered, opening, picture_of, plain
from runs.journal.lease import now
from runs.journal.verify import snapshot, verify
from runs.models import Call, Event, Run
from runs.providers.base import Answer, ProviderError
from runs.runner.flights import Flight, proven
from runs.tools.base import Kind, Outcome, Tool
from runs.tools.host import ALONE, HOST_TOOLS

BACKOFF = (1, 4, 15, 60)


def record_answer(draft: Draft, flight: Flight, labels: set[str], tools: list[str]) -> None:
    """Draft what the model's response amounts to. `labels` are the call ids of the segment, `tools` the agent's."""
    result = flight.result
    if isinstance(result, ProviderError):
        _failed(draft, flight.ms, result.reason, detail=result.detail, retry_after=result.retry_after)
        return
    try:
        if not result.blocks:
            raise messages.Malformed("empty")
        found = messages.proposals(result.calls, result.stop, labels)
    except messages.Malformed as error:
        reason = "refusal" if str(error) == "refusal" else f"malformed:{error}"
        _failed(draft, flight.ms, reason, payload=to_json(result.blocks), detail=result.detail)
    else:
        _answered(draft, flight.ms, result, found, tools)


def settle(draft: Draft, result: Answer | ProviderError) -> None:
    """Draft what a request came to; one of which nobody can tell whether it was billed keeps its reservation."""
    if result.usage is None and getattr(result, "kind", None) is None:
        return
    usage = asdict(result.usage) if result.usage else {}
    ask = draft.state.ask
    assert ask is not None, "only an open request is settled"
    draft.money.append(budgets.Settle(draft.state.turn, ask.attempt, usage))


def _failed(
    draft: Draft, ms: int, reason: str, payload: str | None = None, detail: str = "", retry_after: float = 0.0
) -> None:
    tries = draft.state.ask.tries if draft.state.ask else 0
    wait = 0 if reason.startswith("malformed") else min(retry_after or BACKOFF[min(tries, len(BACKOFF) - 1)], 3600)
    due = draft.now + int(wait * SECOND) if wait else 0
    draft.add(e.ModelFailed(reason, due, ms, storable(detail, 300)), actor="model", payload=payload)


def _answered(draft: Draft, ms: int, answer: Answer, found: list[messages.Proposal], tools: list[str]) -> None:
    payload = to_json(answer.blocks)
    fact = e.ModelAnswered(answer.stop, answer.tokens, len(payload.encode()), len(found), ms)
    draft.add(fact, actor="model", payload=payload)
    if draft.state.cancel:
        return  # recorded and never judged: a person has cancelled
    if not found:
        counted = not draft.state.notes
        draft.add(e.FinishRefused(["end with the tool finish and cite evidence of this run"], counted))
    for ordinal, proposal in enumerate(found, 1):
        _judge(draft, ordinal, proposal, tools, alone=len(found) == 1)


def _judge(draft: Draft, ordinal: int, proposal: messages.Proposal, tools: list[str], alone: bool) -> None:
    tool = spec(proposal.tool) if proposal.tool in tools or proposal.tool in HOST_TOOLS else None
    try:
        if tool is None:
            offered = ", ".join([*tools, *HOST_TOOLS])
            raise InvalidArguments(f"unknown tool {proposal.tool[:64]!r}; offered are {offered}")
        if tool.name in ALONE and not alone:
            raise InvalidArguments(f"{tool.name} must be the only call of its turn")
        args = tool.check(proposal.arguments)
    except InvalidArguments as error:
        why = storable(str(error), 2000)
        fact = e.CallJudged(proposal.label, storable(proposal.tool, 64), verdict="invalid", why=why)
        draft.add(fact, call=ordinal, revision=1, payload=proposal.arguments)
        return
    judged = _host if tool.name in HOST_TOOLS else gate.propose
    judged(draft, tool, ordinal, proposal.label, args)


def _host(draft: Draft, tool: ToolSpec, ordinal: int, label: str, args: str) -> None:
    """finish, ask_user and give_up: the host itself answers."""
    values = json.loads(args)
    deny = tool.name == "ask_user" and draft.state.unattended
    why = "nobody watches this run, so nobody can answer" if deny else values.get("reason", "")
    verdict = "deny" if deny else "allow"
    fact = e.CallJudged(label, tool.name, tool.definition, "host", digest(args), verdict=verdict, why=why)
    draft.add(fact, call=ordinal, revision=1, payload=args)
    if tool.name == "finish":
        _finish(draft, ordinal, values["evidence"])
    elif tool.name == "ask_user" and not deny:
        draft.add(e.QuestionAsked(values["question"], values["schema"]), call=ordinal)


def _finish(draft: Draft, ordinal: int, cited: list[str]) -> None:
    """Judge a claimed finish on committed rows; a note that the model has not read yet refuses it, uncounted."""
    unread = ["a person left a note: read it first"] if draft.state.notes else []
    if lacks := unread or acceptance.missing(draft.state.checks, cited, _proofs(draft)):
        observed = to_json({"outcome": "not_finished", "missing": lacks})
        draft.add(e.FinishRefused(lacks, not unread, digest(observed)), call=ordinal, payload=observed)
        return
    with snapshot():  # a note that is left meanwhile must not look like a change beside the record
        faults = verify(Run.objects.get(pk=draft.picture.run))
    if faults:
        raise Tampered(faults[0])  # what acceptance was judged on are rows: they must be those of the record
    draft.add(e.FinishClaimed(cited), call=ordinal)
    draft.add(e.RunEnded("succeeded"))


def _proofs(draft: Draft) -> list[acceptance.Proof]:
    rows = Call.objects.filter(run=draft.picture.run, status="done", outcome="ok").exclude(effect="host")
    columns = ("turn", "ordinal", "tool", "ended_seq", "evidence", "met", "objects_touched", "changed")
    return [acceptance.Proof(f"call:{turn}.{n}", *rest) for turn, n, *rest in rows.values_list(*columns)]


def record_outcome(draft: Draft, flight: Flight, inputs: Mapping[str, Any]) -> None:
    """Draft the end of a call that this worker started."""
    tool = catalog().tools[draft.state.calls[flight.ordinal].tool]
    outcome = proven(tool, flight.result)
    known, shown = known_of(draft, tool, outcome, flight.args, inputs)
    # An hour at most, whatever the remote says.
    due = draft.now + int(min(outcome.retry_after, 3600.0) * SECOND) if outcome.kind == Kind.RETRYABLE else 0
    fact = e.CallEnded(
        outcome.kind.value, source=storable(outcome.source, 120), version=storable(outcome.version, 120), ms=flight.ms,
        proof=outcome.proof or "", retry_at=due, after_cancel=draft.state.cancel, **known,
    )  # fmt: skip
    draft.add(fact, call=flight.ordinal, actor="tool", payload=shown)


def known_of(
    draft: Draft, tool: Tool, outcome: Outcome, args: str, inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """What an outcome tells, in the fields that CallEnded, CallSettled and LateEvidence share, and its observation."""
    if outcome.kind == Kind.UNKNOWN:
        return {"status": storable(outcome.status)}, None
    ok = outcome.kind == Kind.OK
    values = json.loads(args)
    keys = list(tool.spec.object_keys(values)) if tool.spec.effect != "read" else []
    changed = (keys if outcome.changed is None else list(outcome.changed)) if ok else []
    evidence = [storable(x, 200) for x in outcome.evidence] if ok else []
    origin = outcome.source, outcome.version
    shown = messages.observation(outcome.kind, outcome.status, outcome.data, evidence, *origin)
    met = acceptance.meets(draft.state.checks, tool.name, values, outcome.data, inputs) if ok else []
    return {
        "status": storable(outcome.status), "effect_ref": storable(outcome.effect_ref, 200),
        "observation": digest(shown), "met": met, "changed": changed, "evidence": evidence,
    }, shown  # fmt: skip


def record_probe(draft: Draft, flight: Flight, inputs: Mapping[str, Any]) -> None:
    """Draft what a probe found. Of a resend only ok settles: a refusal answers the second request, not the first."""
    call = draft.state.calls[flight.ordinal]
    tool, outcome = catalog().tools[call.tool], flight.result
    found = outcome.kind == Kind.OK
    absent = flight.how == "lookup" and outcome.kind == Kind.DECLINED
    verdict = "found" if found else "not_found" if absent else "inconclusive"
    due = draft.state.limits.probe_due(draft.now, call.probes)
    draft.add(e.CallProbed(call.probes, flight.how, "told", verdict, due), call=flight.ordinal, actor="tool")
    if found:
        known, shown = known_of(draft, tool, outcome, flight.args, inputs)
        fact = e.CallSettled("done", flight.how, outcome="ok", after_cancel=draft.state.cancel, **known)
        draft.add(fact, call=flight.ordinal, actor="tool", payload=shown)


def add_late(run_id: int, flight: Flight) -> None:
    """Add late evidence without a lease, under the row's lock: whoever holds the lease keeps it as it is."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        draft = Draft(picture_of(run), now())
        _late(draft, flight, plain(opening(run_id)["inputs"]))
        if draft.entries:
            append(draft)


def _late(draft: Draft, flight: Flight, inputs: Mapping[str, Any]) -> None:
    """Draft what a former holder, or a watch, found out about a call that was started."""
    row = Call.objects.get(run=draft.picture.run, turn=flight.turn, ordinal=flight.ordinal)
    tool = catalog().tools[row.tool]
    outcome = proven(tool, flight.result)
    call = draft.state.calls.get(row.ordinal) if draft.state.turn == row.turn and not draft.state.end else None
    told = call.late.get("outcome") if call else None
    if not _proves(flight, outcome, row) or (flight.how == "lookup" and "ok" in (row.outcome, told)):
        return  # or another look was first
    known, shown = known_of(draft, tool, outcome, flight.args, inputs)
    place = {"call": flight.ordinal, "turn": flight.turn, "revision": flight.revision}
    if call and call.maybe_sent and call.approval_status in ("pending", "approved"):
        draft.add(e.ApprovalClosed(call.approval, "withdrawn", "the first request was heard of"), call=row.ordinal)
    draft.add(e.LateEvidence(outcome.kind.value, flight.key, **known), **place, actor="tool", payload=shown)
    if told != outcome.kind.value and (clash := _clash(row, tool, outcome)):
        draft.add(e.IncidentOpened(f"call {row.turn}.{row.ordinal} {row.tool} was held to be {clash}"), **place)


def _proves(flight: Flight, outcome: Outcome, row: Call) -> bool:
    """Whether late news says what became of the call: ok does, a refusal only of the one request ever sent for it."""
    if outcome.kind == Kind.OK:
        return True
    if flight.how != "run" or outcome.kind in (Kind.UNKNOWN, Kind.RETRYABLE):
        return False
    events = Event.objects.filter(run=row.run_id, turn=row.turn, ordinal=row.ordinal)
    return events.filter(Q(kind="CallStarted") | Q(kind="CallProbed", body__contains='"resend"')).count() == 1


def _clash(row: Call, tool: Tool, outcome: Outcome) -> str:
    """How late news contradicts what is on record of a call that is at its end; empty if it does not."""
    if row.status not in machines.CALL_ENDS:
        return ""
    held, found = row.outcome if row.status == "done" else row.status.replace("_", " "), outcome.kind.value
    two = held == found == "ok" and row.effect_ref and outcome.effect_ref and not tool.spec.effect.again
    if two and row.effect_ref != storable(outcome.effect_ref, 200):
        return f"ok with {row.effect_ref}; it turned out ok with {outcome.effect_ref}"
    differs = held != found if row.status == "done" else outcome.kind == Kind.OK
    return f"{held}; it turned out {found}" if differs else ""
