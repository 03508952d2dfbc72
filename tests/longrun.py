"""A run with thousands of calls in seconds: the same facts, rows and chain that a worker would have written.

Every fact goes through the journal's own `append`, many turns an append; nothing is inserted beside it. What needs
Django is imported inside: this file is read before Django is set up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs.journal.append import Draft
    from runs.models import Run

CALLS_A_TURN, TURNS_AN_APPEND = 4, 25
SECOND = 1_000_000
EVERY = {37: "fatal", 53: "deny", 61: "invalid"}  # every so many calls, one that went wrong


def long_run(calls: int, *, starter: Any = None, agent: str = "refund", goal: str = "", notes: int = 0) -> Run:
    """A run that made `calls` calls, four a turn, and stands between two turns, at rest; seeded data must be there.

    `starter` is a user, else "operator"; `notes` people's notes are spread over it. It verifies like any other run,
    ends nowhere, and is never due, so that no worker of the stack touches it.
    """
    from django.contrib.auth.models import User

    from runs.actions.runs import start_run
    from runs.models import Agent, Run

    starter = starter or User.objects.get(username="operator")
    limits = {"turns": calls + 10, "calls": calls + 100, "ms": 10**9, "failures": calls + 1, "repeats": calls + 10}
    inputs = {"order_id": "O-1042", "amount": "80.00"} if agent == "refund" else {"order_id": "O-1042"}
    run = start_run(
        starter=starter, agent_version=Agent.objects.get(slug=agent).current, inputs=inputs, facts={"customer": "C-7"},
        goal=goal or f"Look at the order, again and again: {calls} calls.", limits=limits,
    )  # fmt: skip
    every = max(1, calls // notes) if notes else 0
    _made(run, calls, TURNS_AN_APPEND * CALLS_A_TURN, every)
    return Run.objects.get(pk=run.pk)


def prolong(run: Run, calls: int, each: int = CALLS_A_TURN) -> None:
    """It makes `calls` more calls, `each` of them an append, so that who watches hears of each."""
    _made(run, calls, each, 0)


def _made(run: Run, calls: int, each: int, every: int) -> None:
    """Let `run`, at rest, make `calls` calls, `each` an append; a note after every so many, none where it is 0."""
    from runs.engine import events as e
    from runs.journal.append import Draft, Picture, append

    picture, made = Picture.of(run), 0
    clock = max(run.started_at, picture.state.t)
    while made < calls:
        draft, goal = Draft(picture, clock), min(made + each, calls)
        while made < goal:
            many = min(CALLS_A_TURN, goal - made)
            clock = _turn_of(draft, clock, made, many)
            if every and made // every != (made + many) // every:
                said = e.NoteAdded(f"Seen after {made + many} calls.")
                draft.add(said, actor="person", person=run.starter_id, t=clock)
            made += many
        picture = append(draft, rest=True)


def _turn_of(draft: Draft, clock: int, made: int, many: int) -> int:
    """One turn of `many` calls; the time at its end."""
    from runs.engine import events as e
    from runs.engine.canonical import to_json

    turn = draft.state.turn + 1
    if not draft.state.segment:
        draft.add(e.SegmentStarted(1, "start", 0, "tools"), t=clock)
    asked = to_json([{"type": "text", "text": f"Turn {turn}."}])
    draft.add(e.ModelAsked(1, len(asked), clock + 60 * SECOND), turn=turn, payload=asked, t=clock)
    clock += 1_400_000
    said = to_json([{"type": "text", "text": f"I look at {many} orders, from number {made + 1} on."}])
    draft.add(
        e.ModelAnswered("tool_use", 900 + turn % 300, len(said), many, 1400), actor="model", payload=said, t=clock
    )
    for ordinal in range(1, many + 1):
        for fact, header in _call_of(draft, turn, ordinal, made + ordinal, clock):
            draft.add(fact, call=ordinal, t=clock, **header)
            clock += 40_000
    return clock


def _call_of(draft: Draft, turn: int, ordinal: int, number: int, clock: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The facts of one call, in order."""
    from runs.engine import events as e
    from runs.engine.canonical import canonical, digest

    went = next((how for every, how in EVERY.items() if number % every == 0), "ok")
    args = canonical({"order_id": f"O-{1000 + number % 9000}"})
    verdict = {"deny": "deny", "invalid": "invalid"}.get(went, "allow")
    why = {"deny": "Orders of others are not looked at.", "invalid": "order_id: it does not look like O-1042"}.get(went)
    yield (
        e.CallJudged(
            f"l{number}", "get_order", "get_order@1", "read", digest(args), [f"order:O-{1000 + number % 9000}"],
            verdict, "default" if verdict != "invalid" else "", 1, why or "",
        ),
        {"revision": 1, "payload": args},
    )  # fmt: skip
    if verdict != "allow":
        return
    key = f"long-{draft.picture.uid}-{turn}-{ordinal}"
    yield e.CallStarted(key, 1, clock + 30 * SECOND, "allow"), {}
    shown = canonical({"order": f"O-{1000 + number % 9000}", "paid": "249.00", "state": "delivered"})
    ended = e.CallEnded(
        went, "demo", "1", 40, status="delivered" if went == "ok" else "the shop answered 500",
        observation=digest(shown), evidence=[f"call:{turn}.{ordinal}"] if went == "ok" else [],
    )  # fmt: skip
    yield ended, {"actor": "tool", "payload": shown}


def asking_run() -> Run:
    """A run of the demo's messenger that waits for an approval, made by a real shift of a worker in this process."""
    from django.contrib.auth.models import User

    from runs.actions.runs import start_run
    from runs.models import Agent, Run
    from runs.runner import advance

    run = start_run(
        starter=User.objects.get(username="operator"), agent_version=Agent.objects.get(slug="messenger").current,
        goal="Tell the customer.", inputs={"order_id": "O-1042", "text": "On its way."}, facts={"customer": "C-7"},
    )  # fmt: skip
    while Run.objects.get(pk=run.pk).status != "waiting_approval":
        advance(run.pk)
    return Run.objects.get(pk=run.pk)
