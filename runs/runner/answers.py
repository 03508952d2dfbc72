"""From what landed to facts: an answer of the model and its judged calls, outcomes, verdicts of probes."""

import json
from collections.abc import Mapping
from typing import Any

from runs.catalog import catalog, spec
from runs.engine import acceptance, messages
from runs.engine import events as e
from runs.engine.canonical import digest, storable, to_json
from runs.engine.limits import SECOND
from runs.engine.toolspec import InvalidArguments
from runs.journal import gate
from runs.journal.append import Draft
from runs.journal.integrity import Tampered
from runs.journal.verify import verify
from runs.models import Call, Run
from runs.providers.base import Answer, ProviderError
from runs.runner.flights import Flight, due_at, proven
from runs.tools.base import Kind, Outcome, Tool
from runs.tools.host import ALONE, HOST_TOOLS

BACKOFF = (1, 4, 15, 60)


def record_answer(draft: Draft, flight: Flight, labels: set[str], tools: list[str]) -> None:
    """Draft what the model's response amounts to. `labels` are the call ids of the segment, `tools` the agent's."""
    result = flight.result
    if isinstance(result, ProviderError):
        return _failed(draft, flight.ms, result.reason, retry_after=result.retry_after)
    try:
        if not result.blocks:
            raise messages.Malformed("empty")
        found = messages.proposals(result.calls, result.stop, labels)
    except messages.Malformed as error:
        reason = "refusal" if str(error) == "refusal" else f"malformed:{error}"
        return _failed(draft, flight.ms, reason, payload=to_json(result.blocks))
    _answered(draft, flight.ms, result, found, tools)
    return None


def _failed(draft: Draft, ms: int, reason: str, payload: str | None = None, retry_after: float = 0.0) -> None:
    tries = draft.state.ask.tries if draft.state.ask else 0
    wait = 0 if reason.startswith("malformed") else min(retry_after or BACKOFF[min(tries, len(BACKOFF) - 1)], 3600)
    draft.add(e.ModelFailed(reason, draft.now + int(wait * SECOND) if wait else 0, ms), actor="model", payload=payload)


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
    if tool is None:
        offered = ", ".join([*tools, *HOST_TOOLS])
        return _invalid(draft, ordinal, proposal, f"unknown tool {proposal.tool[:64]!r}; offered are {offered}")
    if proposal.tool in ALONE and not alone:
        return _invalid(draft, ordinal, proposal, f"{proposal.tool} must be the only call of its turn")
    try:
        args = tool.check(proposal.arguments)
    except InvalidArguments as error:
        return _invalid(draft, ordinal, proposal, str(error))
    if tool.name in HOST_TOOLS:
        return _host(draft, ordinal, proposal, args)
    gate.propose(draft, tool, ordinal, proposal.label, args)
    return None


def _invalid(draft: Draft, ordinal: int, proposal: messages.Proposal, why: str) -> None:
    fact = e.CallJudged(proposal.label, storable(proposal.tool, 64), verdict="invalid", why=storable(why, 2000))
    draft.add(fact, call=ordinal, revision=1, payload=proposal.arguments)


def _host(draft: Draft, ordinal: int, proposal: messages.Proposal, args: str) -> None:
    """finish, ask_user and give_up: the host itself answers."""
    values = json.loads(args)
    deny = proposal.tool == "ask_user" and draft.state.unattended
    why = "nobody watches this run, so nobody can answer" if deny else ""
    fact = e.CallJudged(
        proposal.label, proposal.tool, HOST_TOOLS[proposal.tool].definition, "host", digest(args),
        verdict="deny" if deny else "allow", why=why or values.get("reason", ""),
    )  # fmt: skip
    draft.add(fact, call=ordinal, revision=1, payload=args)
    if proposal.tool == "finish":
        _finish(draft, ordinal, values["evidence"])
    elif proposal.tool == "ask_user" and not deny:
        draft.add(e.QuestionAsked(values["question"], values["schema"]), call=ordinal)


def _finish(draft: Draft, ordinal: int, cited: list[str]) -> None:
    """Judge a claimed finish on committed rows; a note that the model has not read yet refuses it, uncounted."""
    unread = bool(draft.state.notes)
    lacks = (
        ["a person left a note: read it first"]
        if unread
        else acceptance.missing(draft.state.checks, cited, _proofs(draft))
    )
    if lacks:
        observed = acceptance.result_text(lacks)
        fact = e.FinishRefused(lacks, not unread, digest(observed))
        draft.add(fact, call=ordinal, payload=observed)
        return
    if faults := verify(Run.objects.get(pk=draft.picture.run)):
        raise Tampered(faults[0])  # what acceptance was judged on are rows: they must be those of the record
    draft.add(e.FinishClaimed(cited), call=ordinal)
    draft.add(e.RunEnded("succeeded"))


def _proofs(draft: Draft) -> list[acceptance.Proof]:
    rows = Call.objects.filter(run=draft.picture.run, status="done", outcome="ok").exclude(effect="host")
    return [
        acceptance.Proof(
            f"call:{row.turn}.{row.ordinal}", row.tool, row.ended_seq or 0, tuple(row.evidence), tuple(row.met),
            tuple(row.objects_touched), tuple(row.changed),
        )
        for row in rows
    ]  # fmt: skip


def record_outcome(draft: Draft, flight: Flight, args: str, inputs: Mapping[str, Any]) -> None:
    """Draft the end of a call that this worker started."""
    tool = catalog().tools[draft.state.calls[flight.ordinal].tool]
    outcome = proven(tool, flight.result)
    known, shown = known_of(draft, tool, outcome, args, inputs)
    proof = outcome.proof.value if outcome.proof else ""
    fact = e.CallEnded(
        outcome.kind.value, source=storable(outcome.source, 120), version=storable(outcome.version, 120), ms=flight.ms,
        proof=proof, retry_at=due_at(outcome, draft.now), after_cancel=draft.state.cancel, **known,
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
    shown = messages.observation(
        outcome.kind.value, outcome.status, outcome.data, evidence, outcome.source, outcome.version
    )
    met = acceptance.meets(draft.state.checks, tool.name, values, outcome.data, inputs) if ok else []
    return {
        "status": storable(outcome.status), "effect_ref": storable(outcome.effect_ref, 200),
        "observation": digest(shown), "met": met, "changed": changed, "evidence": evidence,
    }, shown  # fmt: skip


def record_probe(draft: Draft, flight: Flight, args: str, inputs: Mapping[str, Any]) -> None:
    """Draft what a probe found. Of a resend only ok settles: a refusal answers the second request, not the first."""
    call = draft.state.calls[flight.ordinal]
    tool, outcome = catalog().tools[call.tool], flight.result
    found = outcome.kind == Kind.OK
    absent = flight.how == "lookup" and outcome.kind == Kind.DECLINED
    verdict = "found" if found else "not_found" if absent else "inconclusive"
    due = draft.state.limits.probe_due(draft.now, call.probes)
    draft.add(e.CallProbed(call.probes, flight.how, "told", verdict, due), call=flight.ordinal, actor="tool")
    if found:
        known, shown = known_of(draft, tool, outcome, args, inputs)
        fact = e.CallSettled("done", flight.how, outcome="ok", after_cancel=draft.state.cancel, **known)
        draft.add(fact, call=flight.ordinal, actor="tool", payload=shown)


def late(draft: Draft, flight: Flight, args: str, inputs: Mapping[str, Any]) -> None:
    """Draft what a former holder found out about a call that it had started."""
    row = Call.objects.get(run=draft.picture.run, turn=flight.turn, ordinal=flight.ordinal)
    tool = catalog().tools[row.tool]
    outcome = proven(tool, flight.result)
    if outcome.kind in (Kind.UNKNOWN, Kind.RETRYABLE) or (flight.how == "resend" and outcome.kind != Kind.OK):
        return
    known, shown = known_of(draft, tool, outcome, args, inputs)
    draft.add(
        e.LateEvidence(outcome.kind.value, flight.key, **known), call=flight.ordinal, turn=flight.turn,
        revision=flight.revision, actor="tool", payload=shown,
    )  # fmt: skip
    differs = row.status in ("done", "not_executed") and row.outcome != outcome.kind
    if differs or draft.state.end:
        what = (
            f"call {flight.turn}.{flight.ordinal} {row.tool} was held to be {row.status}; it turned out {outcome.kind}"
        )
        draft.add(e.IncidentOpened(what), call=flight.ordinal, turn=flight.turn)
