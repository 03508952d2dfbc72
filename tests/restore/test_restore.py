"""The guide in docs/backup.md, done on real processes: run, back up, run more, restore, safe mode, accept, go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx

from tests.stack import ROOT, Person, Stack, until


def command(name: str) -> str:
    """The commands that stand in the guide under this mark."""
    found = re.search(rf"<!-- {name} -->\n((?:    .*\n)+)", (ROOT / "docs" / "backup.md").read_text())
    assert found, name
    return "\n".join(line[4:] for line in found[1].splitlines())


def follow(stack: Stack, name: str, backup: Path) -> subprocess.CompletedProcess[str]:
    env = stack.env | {"BACKUP": str(backup)}
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    env["PATH"] = os.pathsep.join([*map(str, servers[-1:]), env["PATH"]])
    return subprocess.run(
        ["bash", "-euc", command(name)], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )


def start(person: Person, agent: str = "refund", key: str = "before") -> str:
    fields = {"input_order_id": "O-1042", "fact_customer": "C-7", "input_amount": "80.00"}
    answer = person.post(f"/runs/new/{agent}", {"goal": "Help.", "request_key": key, **fields})
    assert answer.status_code == 302, answer.text
    return str(answer.headers["Location"])


def decide(stack: Stack, run: str, who: str) -> httpx.Response:
    found = until(lambda: stack.sql("SELECT id, digest FROM runs_approval WHERE run_id = %s", (int(run[6:]),)))[0]
    return stack.signed_in(who).post(
        f"/approvals/{found['id']}/approve", {"digest": found["digest"], "confirm": "refund_order"}
    )


def status(stack: Stack, run: str) -> str:
    return str(stack.sql("SELECT status FROM runs_run WHERE id = %s", (int(run[6:]),))[0]["status"])


def outside(stack: Stack) -> list[str]:
    return [line for file in (stack.var / "heads").glob("*.jsonl") for line in file.read_text().splitlines()]


def covered(stack: Stack, run: str) -> bool:
    """Whether all that is recorded of a run stands outside."""
    row = stack.sql("SELECT uid, seq FROM runs_run WHERE id = %s", (int(run[6:]),))[0]
    mark = f'[\\"{row["uid"]}\\",{run[6:]},{row["seq"]},'
    return any(mark in line for line in outside(stack))


def test_the_guide_leads_from_a_backup_through_safe_mode_back_to_work(own_stack: Stack, tmp_path: Path) -> None:
    stack = own_stack
    kind = "postgresql" if stack.env.get("DATABASE_URL", "").startswith("postgres") else "sqlite"
    run = start(stack.signed_in("operator"))
    until(lambda: status(stack, run) == "waiting_approval", what="the refund waits")
    until(lambda: covered(stack, run), what="the waiting run stands outside")
    made = follow(stack, f"{kind}-backup", tmp_path / "backup")
    assert made.returncode == 0, made.stderr

    assert decide(stack, run, "reviewer").status_code == 302
    until(lambda: status(stack, run) == "succeeded", what="the refund is made")
    until(lambda: covered(stack, run), what="the end stands outside")
    assert stack.ledger(kind="refund")["total"] == 1
    stack.stop()
    restored = follow(stack, f"{kind}-restore", tmp_path / "backup")
    assert restored.returncode == 1
    assert f"run {run[6:]}: here to event" in restored.stdout
    stack.start()

    health = stack.healthz()
    assert (health.status_code, health.json()["record"]["ok"]) == (200, False)
    assert "SAFE MODE" in stack.log.read_text()
    assert decide(stack, run, "reviewer").status_code == 503
    assert status(stack, run) == "waiting_approval"
    text = stack.signed_in("operator").get("/safe-mode").text
    assert f'href="{run}"' in text

    accepted = follow(stack, "accept", tmp_path / "backup")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert status(stack, run) == "needs_human"
    until(lambda: stack.healthz().json()["ok"], what="healthy again")
    fresh = start(stack.signed_in("operator"), key="after")
    until(lambda: status(stack, fresh) == "waiting_approval", what="work goes on")
    # Whoever resumes has seen at the remote that it was paid: the key is the same, so even a careless yes pays nothing.
    assert stack.signed_in("operator").post(f"{run}/resume").status_code == 302
    assert decide(stack, run, "reviewer").status_code == 302
    until(lambda: status(stack, run) == "succeeded", what="the restored run ends")
    assert stack.ledger(kind="refund")["total"] == 1
    until(lambda: covered(stack, run), what="it stands outside")
    assert "no fault" in stack.manage("verify_audit").stdout


def test_heads_that_cannot_be_written_are_said_and_stop_nobody(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file where the folder should be")
    stack = Stack(tmp_path / "stack", AGENTOPS_HEADS=str(taken))
    try:
        stack.start()
        until(lambda: not stack.healthz().json()["record"]["ok"], what="health says so")
        assert "see AGENTOPS_HEADS" in stack.healthz().json()["record"]["what_to_do"]
        assert stack.healthz().status_code == 200
        run = start(stack.signed_in("operator"))
        until(lambda: status(stack, run) == "waiting_approval", what="work goes on")
        taken.unlink()
        until(lambda: stack.healthz().json()["ok"], what="healthy once the folder can be made")
        until(lambda: str(stack.sql("SELECT uid FROM runs_run")[0]["uid"]) in next(taken.iterdir()).read_text())
    finally:
        stack.close()


WRITERS = """
import os, sys, threading
import django
django.setup()
from django.contrib.auth.models import User
from django.db import connection
from runs.actions import runs
from runs.models import Agent
agent, starter = Agent.objects.get(slug="refund").current, User.objects.get(username="operator")
def work(number):
    inputs = {"order_id": "O-1042", "amount": "80.00"}
    run = runs.start_run(starter=starter, agent_version=agent, goal="Help.", inputs=inputs, facts={"customer": "C-7"})
    for n in range(int(sys.argv[1])):
        runs.add_note(run.pk, starter, f"note {n} of {number}")
    connection.close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(50)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def test_nothing_is_said_to_be_wrong_while_fifty_write(own_stack: Stack, tmp_path: Path) -> None:
    """With two sweepers, each with a file of its own: the checkpoints do not fork."""
    stack = own_stack
    stack.stop()
    stack.env |= {"AGENTOPS_CHECKPOINT": "0.1", "AGENTOPS_WORKER_THREADS": "50"}
    stack.start()
    env = stack.env | {"DJANGO_SETTINGS_MODULE": "agentops.settings"}
    second = subprocess.Popen(
        [sys.executable, "manage.py", "sweep"], cwd=ROOT, env=env | {"AGENTOPS_HEADS": str(tmp_path / "second")}
    )
    writers = subprocess.Popen([sys.executable, "-c", WRITERS, "12"], cwd=ROOT, env=env)
    looked = 0
    try:
        while writers.poll() is None or looked < 3:
            done = stack.manage("verify_audit", check=False)
            assert done.returncode == 0, done.stderr
            looked += 1
        assert writers.returncode == 0
        until(lambda: next((tmp_path / "second").iterdir()).read_text().splitlines() == outside(stack), what="the same")
    finally:
        second.terminate()
        assert second.wait(10) == 0
    assert len(stack.sql("SELECT number FROM runs_checkpoint")) > 5
    assert "no fault" in stack.manage("verify_audit").stdout
    assert stack.healthz().json()["record"]["ok"]
