"""What may leave, when, and under which name: the real runner, and a remote that keeps every request it got."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.actions import runs
from runs.catalog import catalog
from runs.engine.toolspec import Effect
from runs.journal import lease
from runs.journal.append import Picture
from runs.journal.integrity import opening
from runs.runner.loop import Runner
from runs.tools.base import Context, Kind, Outcome, Proof, tool
from tests.stories import playing
from tests.stories.playing import Name, Play, call, person, publish

pytestmark = pytest.mark.django_db
requests: list[str] = []  # the keys of all requests, as the remote saw them
answers: list[Callable[[], Outcome]] = []


def pay(ctx: Context, *, name: Name) -> Outcome:
    """Pay; the remote answers as the test says, and the last answer again and again."""
    requests.append(ctx.key)
    return (answers.pop(0) if len(answers) > 1 else answers[0])()


def shout(ctx: Context, *, name: Name) -> Outcome:
    """Say something that cannot be taken back."""
    return pay(ctx, name=name)


def brew(ctx: Context, *, name: Name) -> Outcome:
    """Work in a sandbox for as long as it is let, and then come to an effect; one that is stopped has none."""
    brewing.set()
    while ctx.seconds_left() > 0:
        if ctx.cancelled():
            return Outcome(kind=Kind.FATAL, status="aborted", proof=Proof.REMOTE_REFUSED)
        time.sleep(0.01)
    return pay(ctx, name=name)


brewing = threading.Event()
TOOLS = {
    t.name: t
    for t in (
        tool(pay, effect=Effect.KEYED, retention=600),
        tool(shout, effect=Effect.OPAQUE),
        tool(brew, effect=Effect.OPAQUE, deadline=5),
    )
}
OK, LOST = Outcome(kind=Kind.OK, effect_ref="P-1"), Outcome(kind=Kind.UNKNOWN, status="reply lost")
NOT_SENT = Outcome(kind=Kind.RETRYABLE, proof=Proof.PRE_SEND, status="no connection")
REFUSED = Outcome(kind=Kind.DECLINED, status="already refunded", proof=Proof.REMOTE_REFUSED)
AT_ONCE = {"probes": [0]}


@pytest.fixture(autouse=True)
def remote(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tools of this page, allowed; afterwards every request carried a key whose intent is in the record."""
    for name, made in TOOLS.items():
        monkeypatch.setitem(catalog().tools, name, made)
    requests.clear()
    answers.clear()
    playing.first_policy()
    publish(defaults=dict.fromkeys(TOOLS, "allow"))
    yield
    assert playing.faults() == {}


def played(name: str, *replies: Outcome, **options: Any) -> Play:
    """A run whose only turn calls `name` once; these are the remote's replies."""
    answers.extend((lambda reply=reply: reply) for reply in replies)
    end = [call("give_up", reason="enough")]
    return Play([call(name, name="lamp")], end, tools=tuple(TOOLS), limits=AT_ONCE, **options)


def keys(play: Play) -> set[str]:
    return {body["key"] for body in play.events("CallStarted")}


def test_nothing_leaves_when_the_append_of_its_intent_is_refused() -> None:
    play = played("shout", OK)
    publish(off=["shout"])  # as another process does: what this one has cached is outdated
    play.go()
    assert requests == [] and play.events("CallStarted") == [], "judged by the old policy, refused by the fence"
    assert play.call().status == "denied"


def test_every_attempt_carries_the_key_of_the_intent() -> None:
    play = played("pay", NOT_SENT, NOT_SENT, OK).go()
    assert (play.call().status, play.call().attempt) == ("done", 3)
    assert len(requests) == 3 and set(requests) == keys(play) == {play.call().key}, "one effect, one key"


def test_a_resend_carries_the_key_of_the_intent() -> None:
    play = played("pay", LOST, OK).go()
    assert (play.call().status, play.call().outcome) == ("done", "ok")
    assert [(b["how"], b["phase"]) for b in play.events("CallProbed")] == [("resend", "asked"), ("resend", "told")]
    assert len(requests) == 2 and set(requests) == keys(play) == {play.call().key}


def test_a_refusal_of_a_resend_answers_the_second_request_and_settles_nothing() -> None:
    play = played("pay", LOST, REFUSED).go()
    assert play.call().status == "unknown" and play.stop == ("needs_human", "unknown_effect")
    assert {b["verdict"] for b in play.events("CallProbed") if b["phase"] == "told"} == {"inconclusive"}
    assert len(requests) == 5, "one request, four resends, then a person"


def test_a_resend_passes_the_gate_as_a_start_does() -> None:
    in_the_air, decided = threading.Event(), threading.Event()

    def reply() -> Outcome:
        in_the_air.set()
        decided.wait(10)
        return LOST

    play = played("pay")
    answers.append(reply)
    claimed = lease.claim(play.pk)
    assert claimed is not None
    runner = Runner(claimed[0], Picture.of(claimed[0], mine=True), claimed[1], opening(play.pk))
    while not in_the_air.is_set():
        assert runner.step()
    publish(off=["pay"])
    decided.set()
    while runner.step():
        pass
    assert len(requests) == 1, "switched off while the first request was in the air"
    assert play.call().status == "unknown" and play.stop == ("needs_human", "unknown_effect")


def test_what_may_have_been_done_is_not_done_again() -> None:
    play = played("shout", LOST).go()
    assert len(requests) == 1 and play.call().status == "unknown"
    assert play.stop == ("needs_human", "unknown_effect")


def test_what_is_shown_of_a_call_is_what_is_sent() -> None:
    play = played("pay", OK).go()
    (started,) = play.events("CallStarted")
    assert started["request"] == play.call().args_digest and json.loads(play.call().arguments) == {"name": "lamp"}


def test_an_effect_that_can_be_aborted_is_told_of_a_cancel_and_never_happens() -> None:
    brewing.clear()
    play = played("brew", OK)
    claimed = lease.claim(play.pk)
    assert claimed is not None
    runner = Runner(claimed[0], Picture.of(claimed[0], mine=True), claimed[1], opening(play.pk))
    while not brewing.is_set():
        assert runner.step()
    runs.cancel(play.pk, person("other"))
    while runner.step():
        pass
    assert play.run.status == "cancelled" and requests == []
    assert (play.call().status, play.call().outcome, play.call().detail) == ("done", "fatal", "aborted")
    assert play.call().after_cancel
