"""The gate: nothing starts or is sent again without a verdict that stands now (invariants 5, 6, 17).

The policy in force is cached by number; every append that judged or started a call is fenced with that number, so an
outdated cache writes nothing.
"""

import json
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User

from runs import rights
from runs.catalog import spec
from runs.engine import events as e
from runs.engine import policy as engine
from runs.engine.canonical import action_digest, digest
from runs.engine.limits import SECOND
from runs.engine.next_step import Stop, stop_entry
from runs.engine.policy import Policy, Verdict
from runs.engine.state import CallState
from runs.engine.toolspec import ToolSpec
from runs.journal import chain
from runs.journal.append import Draft
from runs.models import Approval, Call, Decision
from runs.models import Policy as PolicyRow

_cached: Policy | None = None


def current_policy(*, fresh: bool = False) -> Policy:
    """The policy in force; `fresh` reads it again."""
    global _cached
    if _cached is None or fresh:
        row = PolicyRow.objects.get(current=True)
        _cached = Policy.load(row.number, row.content)
    return _cached


def judge(draft: Draft, tool: ToolSpec, args: dict[str, Any]) -> Verdict:
    """The verdict on a call by the policy in force, which the append of `draft` will be fenced with."""
    policy = current_policy()
    draft.policy = policy.number
    if draft.state.last_turn:
        return Verdict("deny", "", "this is the last turn: end with finish, ask_user or give_up", policy.number)
    return engine.judge(tool, args, policy, starter=draft.state.starter, unattended=draft.state.unattended)


def propose(draft: Draft, tool: ToolSpec, ordinal: int, label: str, args: str, revision: int = 1) -> Verdict:
    """Judge a proposed call and draft what follows: the verdict, and the approval that an ask needs."""
    values = json.loads(args)
    verdict, objects = judge(draft, tool, values), list(tool.object_keys(values))
    call = CallState("proposed", revision, label, tool.name, tool.definition, tool.effect, digest(args), objects)
    _judged(draft, ordinal, call, verdict, args, payload=args)
    return verdict


def _judged(draft: Draft, ordinal: int, call: CallState, verdict: Verdict, args: str, **header: Any) -> None:
    exclude = list(verdict.exclude)
    fact = e.CallJudged(
        call.label, call.tool, call.definition, str(call.effect), call.args, call.objects, verdict.verdict,
        verdict.rule, verdict.policy, verdict.why, exclude,
    )  # fmt: skip
    draft.add(fact, call=ordinal, revision=call.revision, **header)
    if verdict.verdict == "ask":
        expires = draft.now + verdict.expires * SECOND if verdict.expires else 0
        n = draft.state.calls[ordinal].approval + 1
        draft.add(e.ApprovalRequested(n, bound(draft, ordinal, args), verdict.rule, exclude, expires), call=ordinal)


def bound(draft: Draft, ordinal: int, args: str) -> str:
    """The action digest of a call with these argument bytes."""
    call, state = draft.state.calls[ordinal], draft.state
    return action_digest(draft.picture.uid, state.turn, ordinal, call.revision, call.definition, args, call.objects)


def admit(draft: Draft, ordinal: int, args: str) -> str:
    """How a ready call may start: "allow", "approval" or "again"; "" if it may not, with the reason drafted."""
    call = draft.state.calls[ordinal]
    tool = spec(call.tool)
    if digest(args) != call.args:
        draft.put(stop_entry(draft.state, Stop("integrity", f"the stored arguments of call {ordinal} were changed")))
        return ""
    if tool is None or tool.definition != call.definition:
        verdict = Verdict("deny", "definition", f"{call.tool} was changed since it was proposed; propose it again", 0)
    else:
        verdict = judge(draft, tool, json.loads(args))
    why = verdict.why
    if verdict.verdict != "deny" and call.approval_status in ("approved", "consumed"):
        match _standing(draft, ordinal, args, verdict):
            case "holds":
                return "approval" if call.approval_status == "approved" else "again"
            case "tampered":
                draft.put(stop_entry(draft.state, Stop("integrity", f"call {ordinal} is not what was approved")))
                return ""
        verdict, why = replace(verdict, verdict="ask"), "the voter or the rule changed"
    if verdict.verdict == "allow":
        return "allow"
    if call.approval_status == "approved":
        draft.add(e.ApprovalClosed(call.approval, "superseded", why), call=ordinal)
    _judged(draft, ordinal, call, verdict, args)
    return ""


def may_resend(draft: Draft, ordinal: int, args: str) -> bool:
    """Whether an unknown call may be sent once more under its key: the same gate as a start, changing nothing."""
    call = draft.state.calls[ordinal]
    tool = spec(call.tool)
    if tool is None or tool.definition != call.definition or digest(args) != call.args:
        return False
    verdict = judge(draft, tool, json.loads(args))
    approved = call.approval_status == "consumed" and _standing(draft, ordinal, args, verdict) == "holds"
    return verdict.verdict == "allow" or (verdict.verdict == "ask" and approved)


def _standing(draft: Draft, ordinal: int, args: str, verdict: Verdict) -> str:
    """Whether an approval "holds", has "lapsed" or was "tampered" with.

    The stored facts of people are trusted, not the state: approval, votes and voters are read again.
    """
    call = draft.state.calls[ordinal]
    row = Approval.objects.get(run=draft.picture.run, turn=draft.state.turn, ordinal=ordinal, n=call.approval)
    stored = set(Decision.objects.filter(approval=row).values_list("person_id", "vote"))
    try:
        said = chain.decided(draft.picture.run, row.turn, ordinal, row.n)
    except ValueError:
        return "tampered"
    if said != stored or row.digest != call.action or row.digest != bound(draft, ordinal, args):
        return "tampered"
    voters = User.objects.filter(decisions__approval=row, decisions__vote="approve", decisions__digest=row.digest)
    excluded = set(verdict.exclude)
    entitled = any(v.pk not in excluded and rights.may(v, "decide") for v in voters)
    return "holds" if entitled and excluded <= set(call.exclude) else "lapsed"


def stored_arguments(run: int, turn: int, ordinal: int) -> str:
    """Canonical arguments of a call, as stored."""
    return Call.objects.values_list("arguments", flat=True).get(run=run, turn=turn, ordinal=ordinal)
