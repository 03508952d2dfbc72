"""docs/states.md and docs/events.md: the engine's own tables with words beside them; `manage.py states` writes both."""

from dataclasses import MISSING, fields

from runs.engine import machines
from runs.engine.events import AFTER_END, KINDS, Fact

NOTICE = "Written by `manage.py states` from `{source}`; do not edit. A test fails when the two differ."

RUN_WORDS = {
    "queued": "Something can be done and no worker has it yet; also while it waits for a back-off or a probe.",
    "running": "A worker holds a live lease.",
    "waiting_approval": "Only people can move it: at least one call waits for a decision.",
    "waiting_input": "Only people can move it: the agent asked a question.",
    "paused": "A person paused it. What was in the air is still recorded; nothing begins.",
    "cancelling": "A person asked for the end; what is in the air is awaited, what is unknown is settled.",
    "budget_exhausted": "Stopped: a limit is used up. A person may extend it.",
    "stalled": "Stopped: it goes on without getting on.",
    "needs_human": "Stopped: a person has to look.",
    "succeeded": "Ended: every acceptance check held on evidence.",
    "failed": "Ended: a person gave up on it.",
    "cancelled": "Ended: a person asked for it, and no effect is unknown.",
}
CALL_WORDS = {
    "proposed": "The model asked for it; no verdict yet.",
    "waiting": "People are asked: for an approval, or for an answer.",
    "ready": "It may start; the gate judges it once more when it does.",
    "executing": "The intent is recorded; the request may be on its way.",
    "unknown": "It was sent, or may have been, and nobody knows what came of it.",
    "done": "It came to an outcome.",
    "not_executed": "Held to have had no effect, with the kind of proof; late evidence may still correct it.",
    "invalid": "Unknown tool, arguments that do not fit, or a host tool in bad company. Never started.",
    "denied": "The policy says no. Never started, or proven without effect.",
    "refused": "People said no. Never started.",
    "expired": "Nobody decided in time. Never started.",
    "withdrawn": "The run was cancelled before it started.",
}
APPROVAL_WORDS = {
    "pending": "Open: in the inbox.",
    "approved": "A person said yes; the call has not started yet.",
    "rejected": "A person said no; the reason goes to the model.",
    "consumed": "The call started under it. It cannot be used again by anything else.",
    "expired": "Its time ran out. Expiry never means yes.",
    "superseded": "Something changed: the arguments, the policy, the tool, or the rights of who said yes.",
    "withdrawn": "The run was cancelled or given up.",
}
QUESTION_WORDS = {
    "open": "Waits for an answer: in the inbox.",
    "answered": "A person answered; the model reads it as the result of its call.",
    "withdrawn": "The run was cancelled or ended first.",
}

EVENT_WORDS = {
    "RunStarted": "A person started a run. Payload: goal, inputs with their trust, facts with their source.",
    "SegmentStarted": "A new append-only conversation with the model began.",
    "ModelAsked": "A request goes to the model. Payload: the new user message; a later attempt has none.",
    "ModelAnswered": "A usable response came. Payload: its blocks, verbatim.",
    "ModelFailed": "No usable response; nothing of it enters the conversation. Payload: what came, if anything.",
    "CallJudged": "The policy spoke on a call, or it was invalid. Payload: canonical arguments, when new.",
    "ApprovalRequested": "People are asked about one call at one revision, bound to a digest.",
    "ApprovalClosed": "An approval ended without a vote: expired, superseded, withdrawn.",
    "Decided": "One person's vote on one digest.",
    "CallEdited": "A person changed the arguments. Payload: the new ones.",
    "CallStarted": "The intent, committed before the first byte of the effect leaves.",
    "CallEnded": "What a call came to, as the worker saw it. Payload: the observation.",
    "CallProbed": "The host asks the remote about an unknown call, or was told.",
    "CallSettled": "An unknown call is not unknown any more, and by which proof. Payload: the observation.",
    "QuestionAsked": "The agent asks a person.",
    "QuestionAnswered": "A person answered. Payload: the observation.",
    "NoteAdded": "A person left a note; the model reads it with its next turn.",
    "PauseAsked": "A person asked that nothing new begins.",
    "Resumed": "A person lets it go on; the counter that caused a stop begins again.",
    "CancelAsked": "A person asked for the end.",
    "LimitsChanged": "A person raised limits.",
    "FinishClaimed": "The agent claimed the goal, and every check held.",
    "FinishRefused": "The agent claimed the goal, and something was missing. Payload: what it is told.",
    "RunStopped": "The host stopped the run for a person to look.",
    "RunEnded": "The run is over.",
    "LateEvidence": "A worker without the lease, or a later look, found out what became of it. Payload: observation.",
    "IncidentOpened": "What was held to be true turned out not to be.",
    "IncidentClosed": "A person looked into an incident and says what was found.",
    "SignedOff": "An admin looked at a failed integrity check.",
    "PayloadErased": "A payload was erased; its digest stays in the chain.",
}

RUN_RULE = """Nobody moves the status of a run: one function of the state gives it in every append. The first that
holds wins.

1. ended: how it ended
2. stopped: the kind of the stop
3. cancelling, then paused
4. a live lease: running
5. the next step is something else than waiting, or waits for a back-off or a probe: queued
6. people are asked for a decision: waiting_approval; else: waiting_input"""


def states() -> str:
    """The text of docs/states.md."""
    groups = (("open", machines.RUN_OPEN), ("resumable stop", machines.RUN_STOPS), ("end", machines.RUN_ENDS))
    runs = [f"| {status} | {group} | {RUN_WORDS[status]} |" for group, statuses in groups for status in statuses]
    reasons = [f"| {name} | {status} | {advice} |" for name, (status, advice) in machines.STOP_REASONS.items()]
    return "\n".join([
        "# States", "", NOTICE.format(source="runs/engine/machines.py"), "",
        "## Run", "", RUN_RULE, "", "| status | kind | means |", "|---|---|---|", *runs, "",
        "### Why a run stops", "", "| reason | becomes | what a person can do next |", "|---|---|---|", *reasons, "",
        *_machine("Call", machines.CALL, CALL_WORDS, "proposed"),
        *_machine("Approval", machines.APPROVAL, APPROVAL_WORDS, "pending"),
        *_machine("Question", machines.QUESTION, QUESTION_WORDS, "open"),
        "## Outcomes and effect classes", "",
        f"An outcome is one of: {', '.join(machines.OUTCOMES)}.", "",
        f"An effect class is one of: {', '.join(machines.EFFECTS)} (`host`: tools that the host itself answers).", "",
    ])  # fmt: skip


def _machine(title: str, table: dict[str, tuple[str, ...]], words: dict[str, str], first: str) -> list[str]:
    """A table of states as text, and the same as a diagram."""
    rest = machines.CALL_ENDS if table is machines.CALL else [old for old, new in table.items() if not new]
    rows = [f"| {old} | {', '.join(new) or 'nothing: it is an end'} | {words[old]} |" for old, new in table.items()]
    arrows = [f"    {old} --> {target}" for old, new in table.items() for target in new]
    ends = [f"    {old} --> [*]" for old in rest]
    return [
        f"## {title}", "", "| status | may become | means |", "|---|---|---|", *rows, "",
        "```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *arrows, *ends, "```", "",
    ]  # fmt: skip


def events() -> str:
    """The text of docs/events.md."""
    late = ", ".join(sorted(cls.__name__ for cls in AFTER_END))
    rows = [f"| {kind} | {_body(cls)} | {EVENT_WORDS[kind]} |" for kind, cls in KINDS.items()]
    return "\n".join([
        "# Events", "", NOTICE.format(source="runs/engine/events.py"), "",
        "The closed list of what can be said about a run. An event is a header, a body, and perhaps a payload. The",
        "header: run, seq, kind, turn, ordinal, revision, actor, person, epoch, time in microseconds, digest of the",
        "payload, digest of the state (on the last event of an append), hash. The hash covers all of that and the hash",
        "before it, but of the payload only its digest: a payload can be erased and the chain still verifies.", "",
        f"After the end of a run only these may follow: {late}.", "",
        "Fields marked `?` are left out of the stored body at their default.", "",
        "| kind | body | says |", "|---|---|---|", *rows, "",
    ])  # fmt: skip


def _body(cls: type[Fact]) -> str:
    named = [
        f"{f.name}{'' if f.default is MISSING and f.default_factory is MISSING else '?'}"
        for f in fields(cls)
    ]  # fmt: skip
    version = f" (version {cls.VERSION})" if cls.VERSION > 1 else ""
    return (", ".join(named) or "nothing") + version


PAGES = {"states.md": states, "events.md": events}
