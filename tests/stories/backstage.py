"""Runs beside a stack, in its environment: people who act and workers that die on command, each a process of its own.

Everything is imported once; each job is a fork that opens its own connections. A job is a line of JSON on stdin, its
answer a file: {"id", "do": "act" | "worker", ...}. Nothing here is imported by the application.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
django.setup()

from celery import current_app  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402
from django.db import models, transaction  # noqa: E402

from runs import loops, notify  # noqa: E402
from runs.actions import approvals, questions, runs  # noqa: E402
from runs.actions.acting import Refused  # noqa: E402
from runs.journal import faultpoint  # noqa: E402
from runs.journal import verify as record  # noqa: E402
from runs.models import Agent, Run  # noqa: E402

ANSWERS = Path(sys.argv[1])
PR_SET_PDEATHSIG = 1


def start(starter: User, agent: str, **options: Any) -> Any:
    """Start a run of the current version of an agent."""
    version = Agent.objects.get(slug=agent).current
    return runs.start_run(starter=starter, agent_version=version, **options)


def people(names: list[str]) -> list[int]:
    """Make operators."""
    group = Group.objects.get(name="operator")
    made = [User.objects.get_or_create(username=name)[0] for name in names]
    for person in made:
        person.groups.add(group)
    return [person.pk for person in made]


def verify(since: int, leave_out: list[int]) -> dict[str, list[str]]:
    """Faults of the records of all runs from `since` on; a fold that differs from the row is one of them."""
    found = {str(run.pk): record.verify(run) for run in Run.objects.filter(pk__gt=since).exclude(pk__in=leave_out)}
    return {run: faults for run, faults in found.items() if faults}


def wake(run: int, times: int) -> None:
    """Hints, as often as wanted."""
    for _ in range(times):
        notify._publish(run)


ACTS = {"start": start, "people": people, "verify": verify, "wake": wake}


def act(job: dict[str, Any]) -> dict[str, Any]:
    """Do what a person does; the answer says what came of it."""
    module, _, name = job["name"].rpartition(".")
    function = getattr({"approvals": approvals, "questions": questions, "runs": runs}[module], name) if module else None
    arguments = dict(job["arguments"])
    for role in ("person", "starter"):
        if role in arguments:
            arguments[role] = User.objects.get(username=arguments[role])
    while time.time() < job.get("at", 0):
        pass  # people who press at the same moment
    try:
        came = (function or ACTS[name])(**arguments)
    except Refused as refused:
        return {"status": refused.status, "message": str(refused)}
    return {"status": 200, "result": came.pk if isinstance(came, models.Model) else came}


def act_and_die(job: dict[str, Any]) -> None:
    """The process is killed right after the commit of the act, before anybody could be told of it."""
    with transaction.atomic():
        transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        act(job)


def hints_are_out(seconds: float = 3.0) -> None:
    """A process that ends at once would take its hints with it."""
    end = time.monotonic() + seconds
    while loops._loop and asyncio.all_tasks(loops._loop) and time.monotonic() < end:
        time.sleep(0.005)


def be_a_worker(job: dict[str, Any]) -> None:
    """A Celery worker of this installation with a fault armed."""
    os.environ |= job["env"]
    importlib.reload(faultpoint)  # it reads the environment when it is imported
    from agentops.celery import app

    options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO"]
    app.worker_main(["worker", "-P", "threads", "-c", "8", "-n", f"armed-{os.getpid()}@here", *options])


def answer(job: dict[str, Any], content: dict[str, Any]) -> None:
    """Whole or not there."""
    draft = ANSWERS / f"{job['id']}.draft"
    draft.write_text(json.dumps(content))
    draft.rename(ANSWERS / f"{job['id']}.json")


def be_a_child(job: dict[str, Any]) -> None:
    """One job, then the end of the process."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(ANSWERS / f"{job['id']}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        if job["do"] == "worker":
            be_a_worker(job)
        elif job.get("die"):
            act_and_die(job)
        else:
            answer(job, act(job))
            hints_are_out()
    except BaseException:
        traceback.print_exc()
        answer(job, {"status": 500, "message": traceback.format_exc()})
    finally:
        os._exit(0)


def say(word: object) -> None:
    """To whoever started this process."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Fork for every line until stdin is closed."""
    current_app.loader.import_default_modules()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            be_a_child(job)
        say(pid)


if __name__ == "__main__":
    main()
