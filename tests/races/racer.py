"""The racing processes: each has its own interpreter state and its own connections, and lives for all trials.

Everything is imported once; then one process is forked for each socket whose number is an argument. A job is a line of
JSON, its answer too: {"do": name, "with": {...}, "at": seconds on the monotonic clock} -> {"status", ...}.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
django.setup()

from celery import current_app  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402
from django.db import connection  # noqa: E402

from runs.actions import approvals, policies, runs  # noqa: E402
from runs.actions.acting import Refused  # noqa: E402
from runs.actions.catalogue import set_budget  # noqa: E402
from runs.catalog import catalog  # noqa: E402
from runs.engine.events import ModelAsked, SegmentStarted  # noqa: E402
from runs.journal import budgets, gate, lease  # noqa: E402
from runs.journal.append import Draft, Picture, append  # noqa: E402
from runs.journal.verify import verify  # noqa: E402
from runs.models import (  # noqa: E402
    Account,
    Agent,
    AgentVersion,
    Approval,
    Call,
    Decision,
    Event,
    ModelEntry,
    Policy,
    Run,
    Spend,
)
from runs.runner import advance  # noqa: E402
from runs.sweep import Sweeper  # noqa: E402

PR_SET_PDEATHSIG = 1
RACED = "anthropic:raced"
_people: dict[str, User] = {}


def person(name: str) -> User:
    """One of the people; who they are is read once, what they may do at every act."""
    if name not in _people:
        _people[name] = User.objects.get(username=name)
    return _people[name]


# --- preparing --------------------------------------------------------------------------------------------------------
def people(names: list[str]) -> None:
    """Make operators, an admin, an agent and the first policy: what asks is asked without an expiry."""
    for name in [*names, "starter", "admin"]:
        made, _ = User.objects.get_or_create(username=name)
        made.groups.add(Group.objects.get_or_create(name="admin" if name == "admin" else "operator")[0])
    definition = {"instructions": "", "model": "scripted:once", "tools": ["poke"], "acceptance": [], "limits": {}}
    agent = Agent.objects.create(slug="once", name="Once")
    AgentVersion.objects.create(agent=agent, number=1, definition=definition)
    Policy.objects.update(current=False)
    Policy.objects.create(number=100, content={"defaults": {"poke": "ask"}}, current=True, at=lease.now())


def asked(n: int) -> list[dict[str, Any]]:
    """New runs that wait for a decision."""
    gate.current_policy(fresh=True)
    found = []
    for _ in range(n):
        run = started("prepared")
        advance(run)
        approval = Approval.objects.get(run=run)
        shown = {"run": run, "approval": approval.pk, "digest": approval.digest, "expires": approval.expires_at}
        found.append(shown)
    return found


def approved(n: int) -> list[dict[str, Any]]:
    """New runs whose call was approved and may start."""
    found = asked(n)
    for shown in found:
        decide(shown["approval"], "operator-0", "approve", shown["digest"])
    return found


def policy(content: dict[str, Any]) -> int:
    """A new policy, and the number that it was given."""
    current = Policy.objects.get(current=True)
    return policies.publish(person("admin"), content, "a race", current.number).number


# --- racing -----------------------------------------------------------------------------------------------------------
def started(goal: str, token: str = "") -> int:
    """Start a run, as a form with this token does."""
    version = AgentVersion.objects.get(agent__slug="once")
    return runs.start_run(starter=person("starter"), agent_version=version, goal=goal, request_key=token).pk


def decide(approval: int, who: str, vote: str, digest: str) -> None:
    """Vote."""
    approvals.decide(approval, person(who), vote, digest, f"{who} says {vote}")


def edit(approval: int, who: str, digest: str) -> None:
    """Change how often it is poked."""
    approvals.edit(approval, person(who), digest, '{"times": 7}', f"{who} says edit")


def cancel(run: int, who: str) -> None:
    """Ask the run to end."""
    runs.cancel(run, person(who))


def claim(run: int) -> int:
    """Take the lease and nothing else: the epoch, or 0 if another was first."""
    taken = lease.claim(run)
    return taken[0].epoch if taken else 0


def work(run: int, deliveries: int = 1) -> None:
    """What a worker does with so many deliveries of one wake, all at once. An error of any of them is ours."""

    def one() -> None:
        try:
            advance(run)
        finally:
            connection.close()

    with ThreadPoolExecutor(max(1, deliveries - 1)) as pool:
        others = [pool.submit(one) for _ in range(deliveries - 1)]
        advance(run)
        for other in others:
            other.result()


def sweep(runs: list[int]) -> list[int]:
    """One sweep by a sweeper of its own, and a worker for each of `runs` that it woke; which it woke."""
    woken = [run for run in Sweeper().sweep() if run in runs]
    for run in woken:
        advance(run)
    return woken


def drain() -> None:
    """Work until nothing is due: what other races have left behind."""
    while found := lease.due():
        for run in found:
            advance(run)


def budget(requests: int) -> dict[str, int]:
    """Let the agent ask so many times more today, and half a time; what each request reserves, and what is used."""
    made = {"prices": {"input": 4_000_000, "output": 20_000_000}, "reason": "a race", "at": lease.now()}
    ModelEntry.objects.get_or_create(name=RACED, number=1, defaults=made)
    agent = Agent.objects.get(slug="once").pk
    used = Account.objects.filter(scope="agent", key=agent, day=lease.now() // budgets.DAY).first()
    before, each = used.used if used else 0, (10 + budgets.SLACK) * 4 + 100 * 20
    set_budget(person("admin"), "agent", agent, before + each * requests + each // 2, "a race")
    return {"agent": agent, "before": before, "each": each}


def ask(run: int, agent: int) -> str:
    """Take the lease and ask the model at a price, as a worker does before the request goes out: what came of it."""
    claimed = lease.claim(run)
    assert claimed is not None
    draft = Draft(Picture.of(claimed[0], mine=True), lease.now())
    draft.add(SegmentStarted(1, "start", 0, "t"))
    draft.add(ModelAsked(1, 10, 0), turn=1, payload='[{"text": "Goal", "type": "text"}]')
    draft.money.append(budgets.reserve(draft.state, draft.now, RACED, agent, 10, 100))
    try:
        append(draft)
    except budgets.OverBudget as over:
        return str(over)
    return "asked"


def spent(agent: int, runs: list[int]) -> dict[str, int]:
    """What the agent's account says, and how many of the runs have a reservation."""
    account = Account.objects.get(scope="agent", key=agent, day=lease.now() // budgets.DAY)
    return {"used": account.used, "reserved": Spend.objects.filter(run__in=runs).count()}


# --- looking ----------------------------------------------------------------------------------------------------------
def witness(run: int) -> dict[str, Any]:
    """What the database holds about a run, and what is wrong with its record."""
    row = Run.objects.get(pk=run)
    events = list(Event.objects.filter(run=run).order_by("seq").values("kind", "at", "body"))
    votes = Decision.objects.filter(approval__run=run).values_list("person__username", "vote")
    call = Call.objects.filter(run=run, turn=1, ordinal=1).values("status", "key", "outcome", "after_cancel").first()
    return {
        "status": row.status, "epoch": row.epoch, "goal": row.goal, "kinds": [e["kind"] for e in events],
        "at": {e["kind"]: e["at"] for e in events}, "votes": list(votes), "call": call,
        "approvals": list(Approval.objects.filter(run=run).order_by("n").values_list("status", flat=True)),
        "faults": verify(row),
    }  # fmt: skip


def runs_with(goals: list[str]) -> int:
    """How many runs have one of these goals."""
    return Run.objects.filter(goal__in=goals).count()


def fresh() -> None:
    """Read the policy: what this process judges by until its append is refused."""
    gate.current_policy(fresh=True)


JOBS = {
    f.__name__: f
    for f in (
        people,
        asked,
        approved,
        policy,
        started,
        decide,
        edit,
        cancel,
        claim,
        work,
        sweep,
        drain,
        witness,
        runs_with,
        fresh,
        budget,
        ask,
        spent,
    )
}


def do(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job at its time; when it was over on the database's clock stands in the answer."""
    try:
        time.sleep(max(0.0, job.get("at", 0.0) - time.monotonic()))
        came = JOBS[job["do"]](**job["with"])
    except Refused as refused:
        return {"status": refused.status, "message": str(refused)}
    except Exception:
        return {"status": 500, "message": traceback.format_exc()}
    return {"status": 200, "result": came, "over": lease.now() if job.get("clock") else 0, "pid": os.getpid()}


def race(number: int) -> None:
    """Take jobs until the socket is closed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with socket.socket(fileno=number) as wire, wire.makefile("rw") as lines:
        for line in lines:
            lines.write(json.dumps(do(json.loads(line))) + "\n")
            lines.flush()


def main(numbers: list[int]) -> None:
    """Fork one process for each socket, and wait for all."""
    current_app.loader.import_default_modules()
    catalog()
    for number in numbers:
        if os.fork() == 0:
            for other in numbers:
                if other != number:
                    os.close(other)
            try:
                race(number)
            finally:
                os._exit(0)
    for number in numbers:
        os.close(number)
    for _ in numbers:
        os.wait()


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
