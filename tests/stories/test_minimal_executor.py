"""What any executor of a model's proposals must get right, one by one: the real runner on the real database."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from runs import catalog as the_catalog
from runs.actions import approvals, questions, runs
from runs.actions.acting import Refused
from runs.engine import events as e
from runs.journal import lease
from runs.journal.append import Draft, LeaseLost, Picture, Stale, append
from runs.journal.integrity import check_head
from runs.models import Approval, Question, Run
from runs.runner.loop import Runner
from tests.stories import playing
from tests.stories.playing import SCHEMA, Play, call, finish, person, publish, text, world

pytestmark = pytest.mark.django_db
LOOK = call("look", name="lamp")
SEEN = "thing:lamp:v1"


@pytest.fixture(autouse=True)
def stage(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tools of the play; afterwards each record verifies and each row is the fold of its events."""
    for name, tool in playing.TOOLS.items():
        monkeypatch.setitem(the_catalog.catalog().tools, name, tool)
    world.clear()
    playing.first_policy()
    yield
    assert playing.faults() == {}


# --- what the model may propose ---------------------------------------------------------------------------------------
def test_a_proper_run_succeeds_on_evidence() -> None:
    check = {"id": "seen", "tool": "look", "field": "name"}
    play = Play([text("I look."), LOOK], finish(SEEN), checks=[check]).go()
    assert play.run.status == "succeeded" and play.call().met == ["seen"]
    assert play.told()[0] == {
        "call": "call:1.1", "outcome": "ok", "source": "things", "version": "", "evidence": [SEEN],
        "data": {"name": "lamp", "depth": 1},
    }  # fmt: skip


def test_an_unknown_tool_is_invalid_and_the_offered_ones_are_named() -> None:
    play = Play([call("launch_rocket", target="moon")], finish()).go()
    assert play.run.status == "succeeded" and play.call().status == "invalid"
    (told,) = play.told()
    assert told["outcome"] == "invalid" and "launch_rocket" in told["reason"] and "look, tick" in told["reason"]


def test_a_tool_of_another_agent_is_as_unknown() -> None:
    play = Play([call("poke", name="lamp", times=1)], finish(), tools=("look",)).go()
    assert play.call().status == "invalid" and world == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "name: "),
        ({"name": "Lamp 1"}, "name: "),
        ({"name": 7}, "name: "),
        ({"name": "lamp", "depth": "3"}, "depth: "),
        ({"name": "lamp", "depth": 3.0}, "depth: "),
        ({"name": "lamp", "depth": True}, "depth: "),
        ({"name": "lamp", "depth": None}, "depth: "),
        ({"name": "lamp", "admin": True}, "admin: "),
    ],
)
def test_arguments_that_do_not_fit_are_invalid_and_the_field_is_named(arguments: dict[str, object], named: str) -> None:
    play = Play([call("look", **arguments)], finish()).go()
    assert (play.call().status, play.run.status) == ("invalid", "succeeded")
    (told,) = play.told()
    assert told["outcome"] == "invalid" and told["reason"].startswith(named), told
    assert play.events("CallStarted") == [], "nothing is coerced, nothing runs"


def test_not_found_is_an_answer_and_not_a_failure() -> None:
    play = Play([call("look", name="nobody")], finish()).go()
    assert (play.call().status, play.call().outcome, play.call().detail) == ("done", "declined", "not_found")
    block = play.requests[-1][-1]["content"][0]
    assert block["is_error"] is False and play.told()[0]["status"] == "not_found"
    assert play.run.picture.n.failures == 0


def test_a_tool_that_fails_is_told_as_an_error_and_counted() -> None:
    play = Play([call("fail")], [call("fail"), LOOK], *[[call("fail")]] * 9, limits={"failures": 3, "repeats": 50}).go()
    assert play.requests[1][-1]["content"][0]["is_error"] is True
    assert play.stop == ("stalled", "failures") and len(play.requests) == 5, "three in a row, one success in between"


# --- answers of which nothing may run ---------------------------------------------------------------------------------
MALFORMED = {
    "empty id": [call("look", ident="", name="lamp")],
    "repeated id": [call("look", ident="t1", name="lamp"), call("look", ident="t1", name="chair")],
    "truncated": {"misbehave": "truncated"},
    "unparsable": {"misbehave": "unparsable"},
    "duplicate_id": {"misbehave": "duplicate_id"},
    "more than 16 calls": {"misbehave": "too_many_calls"},
    "empty end": {"misbehave": "empty_end"},
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_nothing_of_a_malformed_answer_runs_and_the_same_turn_is_asked_again(kind: str) -> None:
    play = Play(MALFORMED[kind], [LOOK], finish(SEEN)).go()
    (failed,) = play.events("ModelFailed")
    assert failed["reason"].startswith("malformed:"), failed
    assert play.requests[0] == play.requests[1], "the very same request"
    assert play.run.status == "succeeded" and len(play.events("CallStarted")) == 1
    assert play.run.picture.n.turns == 2, "a turn asked again is one turn"


def test_an_id_of_an_earlier_turn_is_refused() -> None:
    again = call("look", ident="t1", name="chair")
    play = Play([call("look", ident="t1", name="lamp")], [again], [LOOK], finish(SEEN)).go()
    assert [f["reason"].partition(":")[0] for f in play.events("ModelFailed")] == ["malformed"]
    assert play.call(2).tool == "look" and '"chair"' not in play.call(2).arguments
    assert play.run.status == "succeeded"


def test_sixteen_calls_of_one_turn_are_answered_in_their_order() -> None:
    names = [f"{chr(97 + n)}lamp" for n in range(16)]
    play = Play([call("look", name=name) for name in names], finish()).go()
    assert play.run.status == "succeeded"
    assert [r["data"]["name"] for r in play.told()] == names


def test_a_model_that_stays_malformed_is_asked_four_times_and_then_a_person() -> None:
    play = Play(*[MALFORMED["truncated"]] * 4, [LOOK], finish(SEEN)).go()
    assert play.stop == ("needs_human", "model") and len(play.requests) == 4
    runs.resume(play.pk, person("other"))
    assert play.go().run.status == "succeeded"


def test_a_refusal_of_the_provider_goes_to_a_person_at_once() -> None:
    play = Play({"misbehave": "refusal"}).go()
    assert play.stop == ("needs_human", "refused") and len(play.requests) == 1


# --- how it may end ---------------------------------------------------------------------------------------------------
def test_a_finish_without_its_evidence_is_refused_with_what_is_missing() -> None:
    check = {"id": "seen", "tool": "look"}
    play = Play(finish("thing:moon:v9"), [LOOK], finish(SEEN), checks=[check]).go()
    assert play.run.status == "succeeded" and len(play.requests) == 3
    missing = " ".join(play.told(1)[0]["missing"])
    assert "check seen" in missing and "'thing:moon:v9'" in missing


@pytest.mark.parametrize("alone", ["finish", "give_up"])
def test_an_end_beside_other_calls_is_invalid_and_the_others_run(alone: str) -> None:
    end = finish()[0] if alone == "finish" else call("give_up", reason="no")
    play = Play([LOOK, end], finish(SEEN)).go()
    assert [r["outcome"] for r in play.told()] == ["ok", "invalid"] and play.run.status == "succeeded"


def test_an_end_by_text_alone_is_refused_three_times_and_then_a_person_looks() -> None:
    play = Play(*[[text("All done, trust me.")]] * 3).go()
    assert play.stop == ("needs_human", "claims") and len(play.requests) == 3
    assert "claim without evidence" in play.words()


def test_giving_up_stops_with_the_reason_and_a_person_may_end_it() -> None:
    play = Play([call("give_up", reason="I have no tool for this.")]).go()
    assert play.stop == ("needs_human", "give_up") and play.call().why == "I have no tool for this."
    runs.close_failed(play.pk, person("other"), "It is right.")
    assert play.run.status == "failed"


def test_a_question_is_answered_by_a_person_and_read_by_the_model() -> None:
    play = Play([call("ask_user", question="Which colour?", schema=SCHEMA), LOOK], finish(SEEN)).go()
    assert (play.run.status, play.run.lease_until, play.run.due_at) == ("waiting_input", None, None)
    assert play.call(ordinal=2).status == "done", "its sibling ran meanwhile"
    question = Question.objects.get(run=play.pk)
    with pytest.raises(Refused):
        questions.answer(question.pk, person("other"), "")
    questions.answer(question.pk, person("other"), {"colour": "black"})
    questions.answer(question.pk, person("other"), {"colour": "black"})
    with pytest.raises(Refused, match="other"):
        questions.answer(question.pk, person("third"), {"colour": "white"})
    assert play.go().run.status == "succeeded"
    assert play.told()[0]["answer"] == {"colour": "black"}


# --- bounds -----------------------------------------------------------------------------------------------------------
def test_a_budget_of_one_request_is_used_up_by_one_request_which_may_only_end() -> None:
    play = Play([LOOK], [LOOK], finish(SEEN), limits={"turns": 1}).go()
    assert play.stop == ("budget_exhausted", "turns") and len(play.requests) == 1
    assert play.call().status == "denied" and "this is the last turn" in play.call().why
    with pytest.raises(Refused, match="extend"):
        runs.resume(play.pk, person("other"))
    with pytest.raises(Refused, match="raised"):
        runs.extend_limits(play.pk, person("other"), {"calls": 2})
    runs.extend_limits(play.pk, person("other"), {"turns": 3}, "two more")
    assert play.go().run.status == "succeeded"


def test_each_message_ends_with_what_is_left_and_near_the_end_asks_to_wrap_up() -> None:
    play = Play(*[[call("tick")]] * 4, [call("give_up", reason="Enough.")], limits={"turns": 5}).go()
    told = [request[-1]["content"][-1]["text"] for request in play.requests]
    assert [f"{left} turns" in text for left, text in zip((4, 3, 2, 1, 0), told, strict=True)] == [True] * 5
    assert ["Wrap up" in text for text in told] == [False, False, False, True, False]
    assert ["last turn" in text for text in told] == [False, False, False, False, True]
    assert "60 calls, 30 minutes of work" in told[0] and "56 calls" in told[4]


def test_the_limit_of_calls_holds_within_a_turn() -> None:
    play = Play(
        [call("look", name="a"), call("look", name="b"), call("look", name="c")], finish(), limits={"calls": 2}
    ).go()
    assert play.stop == ("budget_exhausted", "calls") and len(play.events("CallStarted")) == 2
    runs.extend_limits(play.pk, person("other"), {"calls": 3})
    assert play.go().run.status == "succeeded" and [r["outcome"] for r in play.told()] == ["ok"] * 3


def test_the_same_turn_again_and_again_is_stalled() -> None:
    play = Play(*[[LOOK]] * 3, [call("look", name="chair")], finish()).go()
    assert play.stop == ("stalled", "repeats") and len(play.requests) == 3
    runs.add_note(play.pk, person("other"), "Look at the chair.")
    runs.resume(play.pk, person("other"))
    assert play.go().run.status == "succeeded" and "Look at the chair." in play.words(3)


def test_the_same_call_with_other_results_is_no_repetition() -> None:
    play = Play(*[[call("tick")]] * 5, finish()).go()
    assert play.run.status == "succeeded" and len(play.requests) == 6


# --- people and policy ------------------------------------------------------------------------------------------------
POKE = [call("poke", name="lamp", times=2)]


def test_what_nobody_watches_is_denied_where_it_would_ask() -> None:
    play = Play([*POKE, call("ask_user", question="?", schema=SCHEMA)], finish(), unattended=True).go()
    assert play.run.status == "succeeded" and world == []
    assert [(r["outcome"], "nobody watches" in r["reason"]) for r in play.told()] == [("denied", True)] * 2
    assert not Approval.objects.filter(run=play.pk).exists() and not Question.objects.filter(run=play.pk).exists()


def test_three_refusals_of_people_in_a_row_stop_the_run() -> None:
    play = Play(*[POKE] * 3, limits={"repeats": 50}).go()
    for n in range(3):
        approvals.decide(
            play.approval.pk, person("other"), "reject", play.approval.digest, why=f"No, for the {n}. time."
        )
        play.go()
    assert play.stop == ("needs_human", "refusals") and world == []
    assert play.told()[0] == {
        "call": "call:2.1",
        "outcome": "refused",
        "by": "a person",
        "reason": "No, for the 1. time.",
    }


@pytest.mark.parametrize("off", ["poke", "*"])
def test_a_kill_switch_stops_what_was_approved_before(off: str) -> None:
    play = Play(POKE, finish()).go()
    publish(off=[off])
    play.approve()
    assert world == [] and play.call().status == "denied" and play.run.status == "succeeded"
    assert play.approval.status == "superseded" and "switched off" in play.told()[0]["reason"]


def test_a_stricter_policy_between_decision_and_start_asks_again_and_old_votes_do_not_count() -> None:
    play = Play(POKE, finish()).go()
    first = play.approval
    rule = {"id": "four-eyes", "effect": "ask", "tools": ["poke"], "exclude_starter": True, "why": "another person"}
    publish(rules=[rule])
    play.approve(by="starter")  # allowed by the policy that asked, not by the one that would start it
    assert world == [] and play.run.status == "waiting_approval"
    first.refresh_from_db()
    assert (first.status, play.approval.n, play.approval.revision) == ("superseded", 2, 1)
    with pytest.raises(Refused) as refused:
        approvals.decide(play.approval.pk, person("starter"), "approve", play.approval.digest)
    assert refused.value.status == 403
    play.approve(by="other")
    assert play.run.status == "succeeded" and [w[1]["times"] for w in world] == [2]
    assert [b["via"] for b in play.events("CallStarted")] == ["approval"]


def test_a_milder_policy_keeps_the_approval_that_people_gave() -> None:
    play = Play(POKE, finish()).go()
    publish(defaults={"look": "allow", "poke": "allow"})
    play.approve()
    assert play.run.status == "succeeded" and len(world) == 1 and play.approval.status == "consumed"


def test_a_policy_that_moved_is_noticed_by_the_append_that_judges() -> None:
    play = Play([LOOK, *POKE], finish())  # this process has read policy 1; another process publishes 2
    publish(off=["poke"])
    play.go()
    assert play.run.status == "succeeded" and world == []
    assert {body["policy"] for body in play.events("CallJudged") if body.get("policy")} == {2}


def test_a_voter_who_lost_the_right_is_not_counted() -> None:
    play = Play(POKE, finish()).go()
    leaver = person("leaver")
    approvals.decide(play.approval.pk, leaver, "approve", play.approval.digest)
    leaver.groups.clear()
    play.go()
    assert world == [] and play.run.status == "waiting_approval"
    assert [a.status for a in Approval.objects.filter(run=play.pk).order_by("n")] == ["superseded", "pending"]
    assert play.approve().run.status == "succeeded" and len(world) == 1


def test_a_paused_run_begins_nothing_and_decisions_do_not_unpause_it() -> None:
    play = Play(POKE, finish()).go()
    runs.pause(play.pk, person("other"))
    play.approve()
    assert (play.run.status, world, play.call().status) == ("paused", [], "ready")
    runs.resume(play.pk, person("other"))
    assert play.go().run.status == "succeeded" and len(world) == 1


def test_a_note_that_the_model_has_not_read_refuses_its_finish_and_is_not_counted() -> None:
    asked, noted = threading.Event(), threading.Event()
    play = Play(finish(), finish(), limits={"claims": 1})

    def meanwhile() -> None:
        asked.set()
        noted.wait(10)

    play.meanwhile = meanwhile
    claimed = lease.claim(play.pk)
    assert claimed is not None
    run = claimed[0]
    runner = Runner(run, Picture.of(run, mine=True), claimed[1], playing.json.loads(check_head(run).payload or ""))
    assert runner.step() and asked.wait(5), "the model is thinking"
    runs.add_note(play.pk, person("other"), "Mind the gap.")
    noted.set()
    while runner.step():
        pass
    assert play.run.status == "succeeded" and len(play.requests) == 2
    assert [(b["counted"], b["missing"]) for b in play.events("FinishRefused")] == [
        (False, ["a person left a note: read it first"])
    ]
    assert "Mind the gap." in play.words()


# --- who may write ----------------------------------------------------------------------------------------------------
def lapse(play: Play) -> None:
    """The lease is over, as if its holder had been frozen for long."""
    past = lease.now() - 1
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET lease_until = %s, due_at = %s WHERE id = %s", [past, past, play.pk])


def held(play: Play) -> Picture:
    """Take the lease."""
    claimed = lease.claim(play.pk)
    assert claimed is not None
    return Picture.of(claimed[0], mine=True)


def test_the_epoch_alone_fences_a_worker_that_was_frozen_while_nobody_appended() -> None:
    play = Play()
    frozen = held(play)
    lapse(play)
    other = held(play)
    assert (other.seq, other.epoch) == (frozen.seq, frozen.epoch + 1), "the same seq: only the epoch tells them apart"
    with pytest.raises(LeaseLost):
        append(Draft(frozen, lease.now()).add(e.NoteAdded("stale")))
    assert play.run.seq == other.seq and play.events("NoteAdded") == []
    append(Draft(other, lease.now()).add(e.NoteAdded("mine")))
    assert len(play.events("NoteAdded")) == 1


def test_a_picture_older_than_a_persons_act_is_stale() -> None:
    play = Play()
    mine = held(play)
    runs.add_note(play.pk, person("other"), "first")
    with pytest.raises(Stale):
        append(Draft(mine, lease.now()).add(e.NoteAdded("second")))
    assert len(play.events("NoteAdded")) == 1


def test_a_claim_needs_that_the_run_is_due() -> None:
    play = Play(POKE)
    mine = held(play)
    assert lease.claim(play.pk) is None and play.run.epoch == mine.epoch, "a duplicate message costs nothing"
    lapse(play)
    taken = held(play)
    assert taken.crashes == 1 and taken.epoch == mine.epoch + 1


def test_three_lapsed_leases_without_progress_go_to_a_person() -> None:
    play = Play([LOOK], finish(SEEN))
    for _ in range(3):
        held(play)
        lapse(play)
    play.go()
    assert play.stop == ("needs_human", "crashes") and play.requests == []
    runs.resume(play.pk, person("other"))
    assert play.go().run.status == "succeeded"


def test_a_worker_that_dies_with_a_read_in_the_air_is_followed_by_one_that_reads_again() -> None:
    play = Play([LOOK], finish(SEEN))
    claimed = lease.claim(play.pk)
    assert claimed is not None
    run = claimed[0]
    runner = Runner(run, Picture.of(run, mine=True), claimed[1], playing.json.loads(check_head(run).payload or ""))
    while not play.events("CallStarted"):
        runner.step()
    assert play.events("CallEnded") == [], "what landed is recorded by the next step, which never comes"
    lapse(play)
    play.go()
    assert play.run.status == "succeeded"
    assert [b["outcome"] for b in play.events("CallEnded")] == ["unknown", "ok"]
    assert [(b["to"], b["proof"]) for b in play.events("CallSettled")] == [("ready", "class")]
    assert Run.objects.get(pk=play.pk).crashes == 0
