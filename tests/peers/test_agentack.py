"""`agentack` over traces that we export: honest runs pass, each way of breaking the rules fails by its own check."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agentack.engine import evaluate_events
from agentack.models import EvaluationReport
from agentack.parser import read_jsonl_with_digest
from agentack.policy import Policy

from runs.engine import events as e
from runs.engine.limits import SECOND

if TYPE_CHECKING:
    from tests.stories.playing import Play

pytestmark = pytest.mark.django_db
HOUR = 3600 * SECOND
# What an auditor believes must be approved; agentack knows tools and effect classes, not amounts.
POLICY = Policy(require_approval_for=("pay:keyed", "poke:opaque", "shout:opaque"), max_approval_age_seconds=300)


@pytest.fixture(autouse=True)
def stage(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of two plays under a policy where everything asks; what `pay` meets is up to each run."""
    from runs.catalog import catalog
    from runs.engine.policy import starter_default
    from runs.models import Policy as PolicyRow
    from tests.stories import playing, test_sending

    tools = playing.TOOLS | test_sending.TOOLS
    for name, tool in tools.items():
        monkeypatch.setitem(catalog().tools, name, tool)
    if not PolicyRow.objects.exists():
        playing.first_policy()
    rules = [{"id": "no-moon", "effect": "deny", "tools": ["poke"], "why": "never",
              "when": [{"arg": "name", "op": "eq", "value": "moon"}]}]  # fmt: skip
    playing.publish(defaults={name: starter_default(t.spec) for name, t in tools.items()} | {"pay": "ask"}, rules=rules)


def played(*calls: dict[str, Any], replies: Any = (), **options: Any) -> Play:
    from tests.stories import test_sending
    from tests.stories.playing import Play, call

    test_sending.answers.clear()
    test_sending.answers.extend((lambda reply=reply: reply) for reply in replies)
    end = [call("give_up", reason="enough")]
    tools = ("look", "poke", "pay", "shout")
    return Play(list(calls), end, end, tools=tools, limits={"probes": [0]}, **options).go()


def ended(play: Play) -> Play:
    """Given up by a person, if it stands."""
    from runs.actions import runs
    from tests.stories.playing import person

    if play.run.picture.stop:
        runs.close_failed(play.pk, person("other"), "enough")
    assert play.run.ended
    return play


# --- honest runs ------------------------------------------------------------------------------------------------------
def approved() -> Play:
    from tests.stories.playing import call

    return ended(played(call("look", name="lamp"), call("poke", name="lamp", times=2)).approve())


def edited() -> Play:
    from runs.actions import approvals
    from tests.stories.playing import call, person

    play = played(call("poke", name="lamp", times=9))
    approvals.edit(play.approval.pk, person("other"), play.approval.digest, '{"name": "lamp", "times": 1}')
    return ended(play.go())


def refused() -> Play:
    from runs.actions import approvals
    from tests.stories.playing import call, person

    play = played(call("poke", name="lamp", times=9))
    approvals.decide(play.approval.pk, person("other"), "reject", play.approval.digest, "no")
    return ended(play.go())


def refused_by_the_host() -> Play:
    from tests.stories.playing import call

    return ended(played(call("rocket"), call("poke", name="moon", times=1), call("look", name=7)))


def cancelled() -> Play:
    from runs.actions import runs
    from tests.stories.playing import call, person

    play = played(call("poke", name="lamp", times=1))
    runs.cancel(play.pk, person("other"))
    return ended(play.go())


def asked_twice() -> Play:
    """The rule changed between the decision and the start."""
    from runs.actions import approvals
    from tests.stories.playing import call, person, publish

    play = played(call("poke", name="lamp", times=1))
    approvals.decide(play.approval.pk, person("other"), "approve", play.approval.digest)
    publish(rules=[{"id": "others", "effect": "ask", "tools": ["poke"], "exclude_starter": True, "why": "two people"}])
    return ended(play.go().approve())


def switched_off() -> Play:
    """An admin switched the tool off between the decision and the start."""
    from runs.actions import approvals
    from tests.stories.playing import call, person, publish

    play = played(call("poke", name="lamp", times=1))
    approvals.decide(play.approval.pk, person("other"), "approve", play.approval.digest)
    publish(off=["poke"])
    return ended(play.go())


def expired() -> Play:
    """Nobody decided in time."""
    from tests.stack import until
    from tests.stories.playing import call, publish

    publish(rules=[{"id": "soon", "effect": "ask", "tools": ["poke"], "why": "at once", "expires": 1}])
    play = played(call("poke", name="lamp", times=1))
    until(lambda: play.go().call().status == "expired", 10)
    return ended(play)


def tried_again() -> Play:
    """The first attempt has proof that nothing happened; the second is of the same approval."""
    from tests.stories import test_sending as remote
    from tests.stories.playing import call

    now = replace(remote.NOT_SENT, retry_after=0.0)
    return ended(played(call("pay", name="lamp"), replies=[now, remote.OK]).approve())


def said_again() -> Play:
    """In doubt, and a person says: once more."""
    return _attested("again")


def said_not_happened() -> Play:
    """In doubt, and a person says: it did not happen."""
    return _attested("not_happened")


def _attested(verdict: str) -> Play:
    from runs.actions import approvals
    from tests.stories import test_sending as remote
    from tests.stories.playing import call, person

    play = played(call("shout", name="lamp"), replies=[remote.LOST, remote.OK]).approve()
    assert play.call().status == "unknown"
    approvals.attest(play.pk, 1, 1, person("other"), verdict, why="I asked them")
    return ended(play.go())


HONEST = (
    approved, edited, refused, refused_by_the_host, cancelled, asked_twice, switched_off, expired, tried_again,
    said_again, said_not_happened,
)  # fmt: skip


def checked(lines: str, folder: Path) -> EvaluationReport:
    path = folder / "trace.jsonl"
    path.write_text(lines)
    return evaluate_events(read_jsonl_with_digest(path)[0], policy=POLICY)


def exported(play: Play) -> str:
    from django.core.management import call_command

    out = io.StringIO()
    call_command("export_trace", str(play.pk), stdout=out)
    return out.getvalue()


def said(report: EvaluationReport) -> list[str]:
    return [f"{f.rule_id} line {f.line}: {f.message}" for f in report.findings]


@pytest.mark.parametrize("story", HONEST, ids=lambda story: story.__name__)
def test_an_honest_run_passes(story: Callable[[], Play], tmp_path: Path) -> None:
    report = checked(exported(story()), tmp_path)
    assert report.status == "PASS", said(report)


def test_a_run_that_has_not_ended_is_incomplete_and_no_more(tmp_path: Path) -> None:
    from tests.stories.playing import call

    report = checked(exported(played(call("poke", name="lamp", times=1))), tmp_path)
    assert report.status == "INCOMPLETE" and set(report.rule_counts) == {"ACK009"}


def test_the_command_of_agentack_takes_it(tmp_path: Path) -> None:
    from agentack.cli import main

    (tmp_path / "policy.toml").write_text(POLICY.to_toml())
    command = ["check", str(tmp_path / "run.jsonl"), "--policy", str(tmp_path / "policy.toml")]
    play = approved()
    for trace, code in ((exported(play), 0), (trace_of(twice(entries(play))), 1)):
        (tmp_path / "run.jsonl").write_text(trace)
        assert main(command) == code


def test_what_is_executed_is_in_the_trace() -> None:
    kinds = [json.loads(line)["type"] for line in exported(tried_again()).splitlines()]
    assert kinds == [
        "action_proposed", "approval_requested", "approval_decision", "action_executed", "session_end",
    ]  # fmt: skip
    assert exported(said_again()).count('"action_executed"') == 2, "a person decided twice"


def test_the_trace_shows_no_argument() -> None:
    from tests.stories.playing import call

    play = ended(played(call("poke", name="seventeen", times=4711)).approve())
    assert "lamp" not in exported(approved()).replace("thing:lamp", "")
    assert "4711" not in exported(play)


def test_a_record_with_faults_is_not_exported() -> None:
    from django.core.management import CommandError

    from tests.audit.tampering import sql

    play = approved()
    sql("UPDATE runs_event SET at = at + 1 WHERE run_id = %s AND seq = 3", play.pk)
    with pytest.raises(CommandError, match="event 3"):
        exported(play)


# --- the same runs, as a worse executor would have recorded them ------------------------------------------------------
Told = list[e.Entry]


@dataclass(frozen=True)
class Broken:
    """What a worse executor did, in a run that was honest, and which rule has to say so."""

    run: Callable[[], Play]
    do: Callable[[Told], Told]
    rule: str
    status: str = "FAIL"


def at(told: Told, kind: type[e.Fact], nth: int = 0) -> int:
    """Where the nth event of a kind about a call with an effect stands."""
    about = [i for i, entry in enumerate(told) if isinstance(entry.fact, kind)]
    if kind is e.CallStarted:
        about = [i for i in about if told[i].fact.via != "allow"]  # type: ignore[attr-defined]
    return about[nth]


def without(told: Told, *kinds: type[e.Fact]) -> Told:
    return [entry for entry in told if not isinstance(entry.fact, kinds)]


def changed(told: Told, kind: type[e.Fact], header: dict[str, Any] | None = None, **fact: Any) -> Told:
    """The first event of a kind, told otherwise."""
    i = at(told, kind)
    return [*told[:i], replace(told[i], fact=replace(told[i].fact, **fact), **header or {}), *told[i + 1 :]]


def moved(told: Told, kind: type[e.Fact], before: type[e.Fact]) -> Told:
    entry = told[at(told, kind)]
    rest = [x for x in told if x is not entry]
    i = at(rest, before)
    return [*rest[:i], entry, *rest[i:]]


def started_all_the_same(told: Told, after: type[e.Fact]) -> Told:
    """A start behind the first event of a kind, although that forbids it."""
    i = at(told, after)
    judged = told[at(told, e.CallJudged)]
    start = e.CallStarted("k", 1, 0, "approval", request=judged.fact.args)  # type: ignore[attr-defined]
    about = {"turn": judged.turn, "ordinal": judged.ordinal, "revision": judged.revision}
    return [*told[: i + 1], replace(told[i], fact=start, person=None, actor="host", **about), *told[i + 1 :]]


def not_asked_again(told: Told) -> Told:
    """The edited call runs on the decision about what it was before: its own asking and vote are left out."""
    second = [i for i, x in enumerate(told) if isinstance(x.fact, e.ApprovalRequested | e.Decided) and x.revision == 2]
    told = [x for i, x in enumerate(told) if i not in second]
    return changed(told, e.CallStarted, via="allow")


def twice(told: Told) -> Told:
    i = at(told, e.CallStarted)
    return [*told[: i + 1], told[i], *told[i + 1 :]]


def late(told: Told) -> Told:
    """Everything from the start on happens an hour later."""
    i = at(told, e.CallStarted)
    return [*told[:i], *(replace(entry, t=entry.t + HOUR) for entry in told[i:])]


BROKEN = {
    "an effect that nobody was asked about": Broken(
        approved,
        lambda told: changed(without(told, e.ApprovalRequested, e.Decided), e.CallStarted, via="allow"),
        "ACK001",
    ),
    "a refused call is executed": Broken(refused, lambda told: started_all_the_same(told, e.Decided), "ACK002"),
    "other bytes than those approved": Broken(
        approved, lambda told: changed(told, e.CallStarted, request="0" * 64), "ACK003"
    ),
    "a yes to other bytes": Broken(approved, lambda told: changed(told, e.Decided, digest="0" * 64), "ACK003"),
    "the effect twice on one yes": Broken(approved, twice, "ACK004"),
    "a yes of an hour ago": Broken(approved, late, "ACK005"),
    "executed before the decision": Broken(approved, lambda told: moved(told, e.CallStarted, e.Decided), "ACK006"),
    "an edited call on the old decision": Broken(edited, not_asked_again, "ACK007"),
    "executed after a cancel": Broken(cancelled, lambda told: started_all_the_same(told, e.CancelAsked), "ACK008"),
    "a start without its decision on record": Broken(
        approved, lambda told: without(told, e.Decided), "ACK009", "INCOMPLETE"
    ),
}
# What this format has no line for. Our own record has, and `verify` and acceptance look at it.
NOT_SEEN: dict[str, Callable[[Told], Told]] = {
    "an unknown outcome told as a failure": lambda told: changed(told, e.CallEnded, outcome="fatal"),
    "an outcome that was never recorded": lambda told: without(told, e.CallEnded),
    "success without evidence": lambda told: changed(told, e.RunEnded, status="succeeded"),
}


def trace_of(told: Told) -> str:
    from runs.audit.trace import trace

    return "".join(json.dumps(line) + "\n" for line in trace("run", told))


def entries(play: Play) -> Told:
    from runs.journal.chain import entry_of
    from runs.models import Event

    return [entry_of(event) for event in Event.objects.filter(run=play.pk).order_by("seq")]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_fails_by_the_check_for_it(name: str, tmp_path: Path) -> None:
    broken = BROKEN[name]
    told = entries(broken.run())
    assert checked(trace_of(told), tmp_path).status == "PASS"
    report = checked(trace_of(broken.do(told)), tmp_path)
    assert report.status == broken.status and broken.rule in report.rule_counts, said(report)


def test_every_rule_of_agentack_is_met_by_a_break() -> None:
    from agentack.findings import RULES

    assert {broken.rule for broken in BROKEN.values()} == set(RULES)


@pytest.mark.parametrize("name", NOT_SEEN)
def test_what_the_format_cannot_say_is_not_seen(name: str, tmp_path: Path) -> None:
    told = entries(approved())
    assert trace_of(NOT_SEEN[name](told)) != "" and NOT_SEEN[name](told) != told
    assert checked(trace_of(NOT_SEEN[name](told)), tmp_path).status == "PASS"
