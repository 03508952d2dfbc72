"""Decide, edit, attest. The approval row answers first: who was first, whether it expired, which bytes it binds."""

import json
from typing import Any

from django.contrib.auth.models import User

from runs.actions.acting import Act, Refused, acting, found, need, said
from runs.actions.runs import draft_cancel
from runs.catalog import catalog
from runs.engine import acceptance, messages
from runs.engine import events as e
from runs.engine.canonical import digest
from runs.engine.state import CallState
from runs.engine.toolspec import InvalidArguments
from runs.journal import gate
from runs.journal.append import Draft
from runs.journal.integrity import Tampered, opening, plain
from runs.models import Approval, Decision

EXPIRED = "This approval has expired. Nothing ran; the agent is told."
WON = {
    "approve": "{who} has already approved this; your vote was not needed.",
    "reject": "{who} has already rejected this; your vote was not needed.",
}


def decide(
    approval_id: int, person: User, vote: str, action_digest: str, why: str = "", stop: bool = False
) -> Approval:
    """One person's vote on the bytes that they were shown; with `stop` a rejection cancels the run as well.

    The same person deciding the same again is a no-op. Raises `Refused`: 409 naming the winner, 410 expired, 412 if
    the digest is another one, 403 without the right.
    """
    if vote not in WON:
        raise Refused("Vote approve or reject.", 422)
    approval = _find(approval_id, person)
    with acting(approval.run_id, person, "decide", ended=True) as draft:
        approval.refresh_from_db()
        if not _check(draft, approval, person, vote, action_digest):
            return approval
        draft.state_fact(e.Decided(approval.n, action_digest, vote, said(why)), call=approval.ordinal)
        if stop and vote == "reject":
            draft_cancel(draft, why)
    approval.refresh_from_db()
    return approval


def edit(approval_id: int, person: User, action_digest: str, arguments: str, why: str = "") -> Approval:
    """Change the arguments of a waiting call: a new revision, judged anew. `arguments` is JSON of the whole object.

    An edit that still asks is approved by its editor, unless they are excluded: then it waits for somebody else.
    Raises `Refused` as `decide`, and 422 with nothing written if the new arguments are invalid or denied.
    """
    approval = _find(approval_id, person)
    with acting(approval.run_id, person, "decide", ended=True) as draft:
        approval.refresh_from_db()
        _check(draft, approval, person, "edit", action_digest)
        call = draft.state.calls[approval.ordinal]
        if call.maybe_sent:
            raise Refused("This call may have been sent once already: approve it as it is, or reject it.")
        args = _checked(call.tool, arguments)
        if digest(args) == call.args:
            raise Refused("Nothing was changed. Approve it as it is, or edit a value.", 422)
        gate.current_policy(fresh=True)
        _draft_edit(draft, approval, args, said(why))
    return Approval.objects.filter(run=approval.run_id, turn=approval.turn, ordinal=approval.ordinal).latest("n")


def _draft_edit(draft: Act, approval: Approval, args: str, why: str) -> None:
    ordinal, call = approval.ordinal, draft.state.calls[approval.ordinal]
    spec, revision = catalog().tools[call.tool].spec, call.revision + 1
    draft.state_fact(e.CallEdited(digest(args), call.args, why), call=ordinal, revision=revision, payload=args)
    draft.add(e.ApprovalClosed(approval.n, "superseded", "edited"), call=ordinal)
    verdict = gate.propose(draft, spec, ordinal, call.label, args, revision)
    if verdict.verdict == "deny":
        raise Refused("The policy denies the edited call: {why}. Nothing was changed.", 422, why=verdict.why)
    asked = draft.state.calls[ordinal]
    if verdict.verdict == "ask" and draft.person.pk not in verdict.exclude:
        draft.state_fact(e.Decided(asked.approval, asked.action, "approve", why or "edited"), call=ordinal)


def attest(
    run_id: int, turn: int, ordinal: int, person: User, verdict: str, reference: str = "", why: str = ""
) -> None:
    """A person says what became of an unknown effect: happened (with its reference), not_happened, or again.

    "again" runs the gate now and starts the same revision under the same key. Raises `Refused`.
    """
    if verdict not in ("happened", "not_happened", "again"):
        raise Refused("Say happened, not_happened or again.", 422)
    because = said(why, empty="Say how you know: it goes into the record.")
    with acting(run_id, person, "decide") as draft:
        call = draft.state.calls.get(ordinal) if draft.state.turn == turn else None
        if call is None or call.status != "unknown":
            raise Refused("This call is not unknown any more: reload the page to see what was found.")
        if call.probing or call.late:
            raise Refused("The host is finding out just now: wait for its answer, then look again.")
        if verdict == "again":
            return _again(draft, ordinal, because)
        done = verdict == "happened"
        known: dict[str, Any] = {"status": "attested by a person"}
        told = {"reference": reference, "note": why}
        shown = messages.observation("ok" if done else "not_executed", known["status"], told)
        if done:
            known |= {"outcome": "ok", "met": _met_by(draft, ordinal), "changed": list(call.objects)}
        fact = e.CallSettled(
            "done" if done else "not_executed", "human", effect_ref=said(reference, 200), observation=digest(shown),
            after_cancel=draft.state.cancel, why=because, **known,
        )  # fmt: skip
        draft.state_fact(fact, call=ordinal, payload=shown)
    return None


def _met_by(draft: Draft, ordinal: int) -> list[str]:
    """The checks that an attested effect meets: its arguments are known, what the remote said is not."""
    state, run = draft.state, draft.picture.run
    args = json.loads(gate.stored_arguments(run, state.turn, ordinal))
    return acceptance.meets(state.checks, state.calls[ordinal].tool, args, {}, plain(opening(run)["inputs"]))


def _again(draft: Act, ordinal: int, why: str) -> None:
    if draft.state.cancel:
        raise Refused("The run is being cancelled: nothing is sent again.")
    gate.current_policy(fresh=True)
    args = gate.stored_arguments(draft.picture.run, draft.state.turn, ordinal)
    if not gate.may_resend(draft, ordinal, args):
        raise Refused("The policy, or the tool, has changed since: this call may not be sent again.")
    draft.state_fact(e.CallSettled("ready", "human", why=why), call=ordinal)


def _find(approval_id: int, person: User) -> Approval:
    need(person, "decide")
    return found(Approval.objects.all(), approval_id)


def _check(draft: Draft, approval: Approval, person: User, vote: str, action_digest: str) -> bool:
    """False if this is the person's own decision once more. Order of answers: closed, expired, changed, excluded.

    The row answers who was first; what binds is read from the run's state, which is under the chain.
    """
    if approval.status != "pending":
        votes = list(Decision.objects.filter(approval=approval).select_related("person"))
        if any(d.person_id == person.pk and d.vote == vote and d.digest == action_digest for d in votes):
            return False
        raise _too_late(approval, votes)
    call = draft.state.calls.get(approval.ordinal, CallState())
    if not call.pending or (draft.state.turn, call.approval) != (approval.turn, approval.n):
        raise Tampered("the approval is open, but the run does not wait for it")
    if 0 < call.expires <= draft.now:
        raise Refused(EXPIRED, 410)
    if action_digest != call.action:
        raise Refused("What you were shown has changed since: reload the page and look again.", 412)
    if person.pk in call.exclude:
        raise Refused("You started this run, so another operator decides.", 403)
    return True


def _too_late(approval: Approval, votes: list[Decision]) -> Refused:
    if approval.status == "expired":
        return Refused(EXPIRED, 410)
    if votes:
        return Refused(WON[votes[0].vote], who=votes[0].person.username)
    return Refused("This approval is no longer open: it was withdrawn, or a newer one took its place.")


def _checked(tool: str, arguments: str) -> str:
    try:
        json.loads(arguments)
        return catalog().tools[tool].spec.check(arguments)
    except json.JSONDecodeError as error:
        raise Refused(
            "The arguments are not JSON: {what} at character {n}.", 422, what=error.msg, n=error.pos
        ) from error
    except InvalidArguments as error:
        raise Refused(f"{error}.", 422) from error
