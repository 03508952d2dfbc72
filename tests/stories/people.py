"""The words in which stories are told: a house with people who act, workers that fail, and witnesses outside of it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.stack import ROOT, Stack, until

_orders = itertools.count(5001)
ENDS = ("succeeded", "failed", "cancelled")
STOPS = ("budget_exhausted", "stalled", "needs_human")
AT_REST = (*ENDS, *STOPS, "waiting_approval", "waiting_input")


def an_order() -> str:
    """An order of 100.00 EUR of customer C-7 that no other story touches."""
    return f"O-{next(_orders)}"


def vote_on(approval: dict[str, Any], person: str = "reviewer", vote: str = "approve") -> dict[str, Any]:
    """A vote on what that approval shows."""
    shown = {"approval_id": approval["id"], "action_digest": approval["digest"]}
    return shown | {"person": person, "vote": vote}


class Answer(dict[str, Any]):
    """What came of an act: `status` as of HTTP, `result` or `message`."""

    @property
    def status(self) -> int:
        return int(self["status"])

    @property
    def message(self) -> str:
        return str(self.get("message", ""))


class Backstage:
    """The client of `backstage.py`."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.numbers = folder, itertools.count(1)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.stories.backstage", str(folder)], cwd=ROOT, env=stack.env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(folder / "backstage.log").open("w"),
        )  # fmt: skip
        assert self._line() == "ready", (folder / "backstage.log").read_text()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def job(self, **job: Any) -> tuple[str, int]:
        """Give a job; its number and the pid that does it."""
        assert self.process.stdin is not None
        name = str(next(self.numbers))
        self.process.stdin.write(json.dumps(job | {"id": name}) + "\n")
        self.process.stdin.flush()
        return name, int(self._line())

    def answer(self, name: str, seconds: float = 40) -> Answer:
        """The answer to a job."""
        path = self.folder / f"{name}.json"
        end = time.monotonic() + seconds
        while not path.exists():
            assert time.monotonic() < end, f"no answer to job {name}: {self.log(name)}"
            time.sleep(0.004)
        found = Answer(json.loads(path.read_text()))
        assert found.status != 500, found.message
        return found

    def log(self, name: str) -> str:
        """What a job printed."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End it, and with it every worker that it made."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Worker:
    """A worker with a fault armed; the log of its faults says whether it fired."""

    def __init__(self, house: House, fault: str) -> None:
        self.house, self.fault = house, fault
        self.hits_file = house.backstage.folder / f"hits-{next(house.numbers)}"
        env = {"AGENTOPS_FAULT": fault, "AGENTOPS_FAULT_LOG": str(self.hits_file), "AGENTOPS_BEAT": "60"}
        self.name, self.pid = house.backstage.job(do="worker", env=env)
        house.workers.append(self)

    @property
    def ready(self) -> bool:
        """True once it takes messages."""
        return " ready." in self.log

    @property
    def log(self) -> str:
        """What it printed."""
        return self.house.backstage.log(self.name)

    @property
    def hits(self) -> int:
        """How often its fault fired."""
        return len(self.hits_file.read_text().splitlines()) if self.hits_file.exists() else 0

    @property
    def state(self) -> str:
        """R, S, T (stopped) ... as in /proc; empty when it is gone."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0].strip("ZX")
        except FileNotFoundError:
            return ""

    def fired(self, seconds: float = 15) -> None:
        """Wait until the fault fired: the process is gone, or frozen."""
        wanted = "T" if ":stop" in self.fault else ""
        until(lambda: self.hits and self.state == wanted, seconds, f"{self.fault} fired; its log:\n{self.log[-2000:]}")

    def wake_up(self) -> None:
        """Let a frozen worker go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Gone, whatever it was doing."""
        if self.state:
            os.kill(self.pid, signal.SIGKILL)
            until(lambda: not self.state, what="a killed worker is gone")


class House:
    """One installation, its people and its witnesses."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.numbers = stack, itertools.count(1)
        self.backstage = Backstage(stack, folder)
        self.workers: list[Worker] = []
        self.tampered: list[int] = []
        self.frozen: list[int] = []

    # --- people -------------------------------------------------------------------------------------------------------
    def act(self, name: str, /, **arguments: Any) -> Answer:
        """One act in a process of its own."""
        return self.backstage.answer(self.backstage.job(do="act", name=name, arguments=arguments)[0])

    def at_once(self, acts: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
        """Acts of many people at the same moment, each in a process of its own."""
        at = time.time() + 0.3 + 0.03 * len(acts)
        jobs = [self.backstage.job(do="act", name=name, arguments=arguments, at=at) for name, arguments in acts]
        return [self.backstage.answer(name) for name, _ in jobs]

    def act_and_die(self, name: str, /, **arguments: Any) -> None:
        """An act whose process is killed after its commit and before its hint."""
        _, pid = self.backstage.job(do="act", name=name, arguments=arguments, die=True)
        until(lambda: not Path(f"/proc/{pid}").exists(), what="the person's process was killed")

    def ok(self, name: str, /, **arguments: Any) -> Any:
        """An act that must be done; its result."""
        answer = self.act(name, **arguments)
        assert answer.status == 200, answer
        return answer.get("result")

    def start(self, agent: str, **inputs: Any) -> int:
        """Start a run of C-7 by the operator; it gets an order of its own unless one is given."""
        return self.start_all([(agent, inputs)])[0]

    def start_all(self, wanted: list[tuple[str, dict[str, Any]]]) -> list[int]:
        """Start many runs side by side."""
        acts = [("start", self._opening(agent, inputs)) for agent, inputs in wanted]
        return [int(answer["result"]) for answer in self.side_by_side(acts)]

    def _opening(self, agent: str, inputs: dict[str, Any]) -> dict[str, Any]:
        if agent != "stock-question":
            inputs = {"order_id": an_order(), **inputs}
        about = {"goal": "Tell a story.", "inputs": inputs, "facts": {"customer": "C-7"}}
        return {"starter": "operator", "agent": agent, **about}

    def side_by_side(self, acts: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
        """Acts that must all be done, in processes of their own, a few at a time."""
        answers: list[Answer] = []
        for few in (acts[n : n + 4] for n in range(0, len(acts), 4)):
            jobs = [self.backstage.job(do="act", name=name, arguments=arguments)[0] for name, arguments in few]
            answers += [self.backstage.answer(job) for job in jobs]
        return answers

    def approve_all(self, runs: list[int]) -> None:
        """The reviewer approves what each of them waits for."""
        acts = [("approvals.decide", vote_on(self.approval(run))) for run in runs]
        for answer in self.side_by_side(acts):
            assert answer.status == 200, answer

    def decide(self, run: int, vote: str = "approve", person: str = "reviewer", **more: Any) -> Answer:
        """Decide what the run waits for."""
        approval = self.approval(run)
        digest = more.pop("action_digest", approval["digest"])
        act = "approvals.edit" if vote == "edit" else "approvals.decide"
        more |= {} if vote == "edit" else {"vote": vote}
        return self.act(act, approval_id=approval["id"], person=person, action_digest=digest, **more)

    def approve(self, run: int, person: str = "reviewer") -> None:
        """Approve what the run waits for."""
        answer = self.decide(run, person=person)
        assert answer.status == 200, answer

    # --- what is stored -----------------------------------------------------------------------------------------------
    def run(self, run: int) -> dict[str, Any]:
        """The row."""
        return self.stack.sql("SELECT * FROM runs_run WHERE id = %s", (run,))[0]

    def status(self, run: int) -> str:
        """The status."""
        return str(self.run(run)["status"])

    def state(self, run: int) -> dict[str, Any]:
        """The stored state, as it is stored."""
        return dict(json.loads(self.run(run)["state"]))

    def reached(self, run: int, *statuses: str, seconds: float = 20) -> str:
        """Wait until the run stands at one of these."""
        return str(
            until(lambda: (s := self.status(run)) in statuses and s, seconds, f"run {run} {statuses}: {self.tell(run)}")
        )

    def tell(self, run: int) -> str:
        """The run in one text, for failures."""
        events = [f"{e['seq']} {e['kind']} {e['turn']}.{e['ordinal']} {e['text'][:160]}" for e in self.events(run)]
        return "\n".join([str({k: v for k, v in self.run(run).items() if k != "head"}), *events[-14:]])

    def events(self, run: int, kind: str = "") -> list[dict[str, Any]]:
        """The events, with `text` (the body as stored) and `body` (parsed)."""
        where, params = ("run_id = %s AND kind = %s", (run, kind)) if kind else ("run_id = %s", (run,))
        rows = self.stack.sql(
            f"SELECT seq, kind, turn, ordinal, revision, epoch, at, person_id, body AS text, payload FROM runs_event"
            f" WHERE {where} ORDER BY seq",
            params,
        )
        return [row | {"body": json.loads(row["text"])} for row in rows]

    def bodies(self, run: int, kind: str) -> list[dict[str, Any]]:
        """The bodies of all events of a kind."""
        return [event["body"] for event in self.events(run, kind)]

    def calls(self, run: int, tool: str = "") -> list[dict[str, Any]]:
        """The calls, in order."""
        rows = self.stack.sql("SELECT * FROM runs_call WHERE run_id = %s ORDER BY turn, ordinal", (run,))
        return [row for row in rows if tool in ("", row["tool"])]

    def call(self, run: int, tool: str) -> dict[str, Any]:
        """The last call of a tool."""
        return self.calls(run, tool)[-1]

    def approvals(self, run: int, status: str = "") -> list[dict[str, Any]]:
        """The approvals, in order."""
        rows = self.stack.sql("SELECT * FROM runs_approval WHERE run_id = %s ORDER BY id", (run,))
        return [row for row in rows if status in ("", row["status"])]

    def approval(self, run: int) -> dict[str, Any]:
        """The approval that the run waits for."""
        found = until(lambda: self.approvals(run, "pending"), 20, f"run {run} asks: {self.tell(run)}")
        return dict(found[-1])

    def told(self, run: int) -> str:
        """Everything that the model was told and said, as one text."""
        kinds = ("ModelAsked", "ModelAnswered")
        return "\n".join(e["payload"] or "" for e in self.events(run) if e["kind"] in kinds)

    def effects(self, **filters: str) -> list[dict[str, Any]]:
        """Rows of the order service's ledger: what really happened."""
        return list(self.stack.ledger(**filters)["rows"])

    def order_of(self, run: int) -> str:
        """The order that a run is about, or nothing."""
        return str(self.inputs(run).get("order_id", {}).get("value", ""))

    def effects_of(self, run: int, kind: str = "") -> list[dict[str, Any]]:
        """Effects on the run's order, which it has to itself."""
        return [e for e in self.effects(order=self.order_of(run)) if kind in ("", e["kind"])]

    # --- what breaks --------------------------------------------------------------------------------------------------
    def _stop(self, pid: int) -> None:
        """SIGSTOP, but not in the middle of a write: on a file database that would lock out everybody."""
        until(lambda: os.kill(pid, signal.SIGSTOP) or self._writable() or os.kill(pid, signal.SIGCONT), what="frozen")  # type: ignore[func-returns-value]

    def _writable(self) -> bool:
        if self.stack.env.get("DATABASE_URL", "").startswith("postgres"):
            return True
        with closing(sqlite3.connect(self.stack.var / "agentops.sqlite3", timeout=0.05, isolation_level=None)) as lite:
            try:
                lite.execute("BEGIN IMMEDIATE")
                lite.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return False
        return True

    @contextmanager
    def frozen_process(self, *names: str) -> Iterator[None]:
        """Supervised processes (worker, sweeper) stand still meanwhile."""
        pids = [self.stack.processes()[name] for name in names]
        try:
            for pid in pids:
                self._stop(pid)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def armed(self, *faults: str) -> list[Worker]:
        """Workers with these faults, ready to take work."""
        made = [Worker(self, fault) for fault in faults]
        until(lambda: all(w.ready or not w.state for w in made), 20, "armed workers are ready")
        return made

    def empty_broker(self) -> int:
        """Every hint is lost; how many there were."""
        url = self.stack.env.get("CELERY_BROKER_URL", "")
        if url.startswith("redis"):
            import redis

            with closing(redis.Redis.from_url(url)) as client:
                lost = int(client.llen("celery"))
                client.flushdb()
            return lost
        files = list((self.stack.var / "broker" / "queue").glob("*.msg"))
        for file in files:
            file.unlink(missing_ok=True)
        return len(files)

    def waiting_hints(self) -> int:
        """Hints that nobody has taken yet."""
        url = self.stack.env.get("CELERY_BROKER_URL", "")
        if url.startswith("redis"):
            import redis

            with closing(redis.Redis.from_url(url)) as client:
                return int(client.llen("celery"))
        return len(list((self.stack.var / "broker" / "queue").glob("*.msg")))

    def tamper(self, run: int, table: str, change: str, where: str, *params: Any) -> None:
        """Change a row as an attacker with the owner's rights: triggers do not count."""
        self.tampered.append(run)
        sql = f"UPDATE {table} SET {change} WHERE {where}"
        if self.stack.env.get("DATABASE_URL", "").startswith("postgres"):
            self.stack.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            self.stack.sql(sql, params)
            self.stack.sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            return
        kept = self.stack.sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", (table,))
        for trigger in kept:
            self.stack.sql(f"DROP TRIGGER {trigger['name']}")
        self.stack.sql(sql, params)
        for trigger in kept:
            self.stack.sql(trigger["sql"])

    # --- after every story --------------------------------------------------------------------------------------------
    def highest(self) -> int:
        """The newest run."""
        return int(self.stack.sql("SELECT coalesce(max(id), 0) AS n FROM runs_run")[0]["n"])

    def in_order(self, since: int) -> None:
        """fold(events) == Run.state and every chain verifies, for all runs newer than `since`; workers are gone."""
        for worker in self.workers:
            worker.end()
        self.workers.clear()
        self.stack.faults.clear()

        def nothing_moves() -> bool:
            sql = "SELECT count(*) AS n FROM runs_run WHERE id > %s AND lease_until IS NOT NULL"
            return not self.stack.sql(sql, (since,))[0]["n"]

        until(nothing_moves, 20, "the runs of the story are at rest")
        faults = self.ok("verify", since=since, leave_out=self.tampered)
        assert faults == {}, faults

    def one_effect_each(self, runs: list[int]) -> list[dict[str, Any]]:
        """The oracle outside: at most one effect per key and call, each announced by a committed intent before it."""
        orders = {self.order_of(run): run for run in runs}
        effects = [e for order in orders if order for e in self.effects(order=order)]
        effects = [e for e in effects if e["kind"] != "delivery_note"]  # repeat-safe: the same note may be set again
        sql = "SELECT run_id, turn, ordinal, revision, at, body FROM runs_event WHERE kind = 'CallStarted' ORDER BY at"
        intents: dict[Any, dict[str, Any]] = {}
        for row in self.stack.sql(sql):
            intents.setdefault(json.loads(row["body"])["key"], row)
        seen: set[Any] = set()
        for effect in effects:
            # A message carries no key: its call is the one on its order, which one run has to itself.
            key = effect["key"] or self.call(orders[effect["order_id"]], "send_message")["key"]
            intent = intents.get(key)
            assert intent, f"an effect without an intent: {effect}"
            assert intent["at"] <= effect["at"], f"an effect before its intent: {effect} {intent}"
            for name in (key, (intent["run_id"], intent["turn"], intent["ordinal"], intent["revision"])):
                assert name not in seen, f"a second effect of {name}: {effect}"
                seen.add(name)
        return effects

    def inputs(self, run: int) -> dict[str, Any]:
        """The inputs as shown to people."""
        found = self.run(run)["inputs"]
        return dict(json.loads(found) if isinstance(found, str) else found)
