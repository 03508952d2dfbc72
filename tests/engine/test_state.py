"""RunState is bounded, stored without loss, and moves calls by their table alone."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine import events as e
from runs.engine.evolve import evolve
from runs.engine.limits import BadLimits, Limits
from runs.engine.machines import APPROVAL, CALL, CALL_ENDS, QUESTION, RUN, STOP_REASONS, IllegalMove, move
from runs.engine.state import Ask, CallState, Counts, RunState, Stop, UnreadableState, dumps, loads
from tests.engine.making import NOW, apply, call, pending, run

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
calls = st.builds(
    CallState,
    status=st.sampled_from(list(CALL)),
    revision=st.integers(1, 9),
    label=texts,
    tool=texts,
    objects=st.lists(texts, max_size=2),
    exclude=st.lists(st.integers(0, 9), max_size=2),
    due=st.integers(0, 2**53),
    late=st.dictionaries(texts, texts, max_size=2),
    question=st.booleans(),
    maybe_sent=st.booleans(),
    probing=st.sampled_from(["", "resend", "lookup"]),
)
states = st.builds(
    RunState,
    turn=st.integers(0, 99),
    ask=st.none() | st.builds(Ask, attempt=st.integers(1, 9), why=texts),
    calls=st.dictionaries(st.integers(1, 16), calls, max_size=4),
    notes=st.lists(st.integers(1, 99), max_size=3),
    limits=st.builds(Limits, turns=st.integers(1, 99), probes=st.tuples(st.floats(0, 9))),
    n=st.builds(Counts, turns=st.integers(0, 99)),
    paused=st.booleans(),
    cancel=st.booleans(),
    end=st.sampled_from(["", "failed"]),
    stop=st.none() | st.builds(Stop, status=texts, reason=texts),
    met=st.lists(texts, max_size=2),
    effects=st.dictionaries(texts, st.integers(1, 9), max_size=2),
)


class TestStoredForm:
    @given(states)
    def test_comes_back_as_it_was(self, state: RunState) -> None:
        assert loads(dumps(state)) == state
        assert dumps(loads(dumps(state))) == dumps(state)

    def test_of_another_version_is_refused(self) -> None:
        with pytest.raises(ValueError, match="another version"):
            loads('{"v":2}')

    @pytest.mark.parametrize("text", ['{"v":1,"surprise":1}', '{"v":1,"calls":{"1":{"surprise":1}}}'])
    def test_with_a_name_that_nobody_knows_is_refused(self, text: str) -> None:
        with pytest.raises(UnreadableState):
            loads(text)

    def test_stays_small_over_five_thousand_turns(self) -> None:
        state, sizes, seq = RunState(), {}, 0
        start = e.RunStarted("a v1", "goal", {"turns": 9_999}, [{"id": "read", "tool": "look"}], 1, False, 1)
        state, _ = evolve(state, e.Entry(fact=start, t=NOW))
        for turn in range(1, 5_001):
            for ordinal, fact in (
                (0, e.ModelAsked(1, 300, NOW)),
                (0, e.ModelAnswered("tool_use", 500, 900, 1, 800)),
                (
                    1,
                    e.CallJudged(
                        f"toolu_{turn}_0", "look", "look@0123456789abcdef", "read", "d" * 64, ["order:O-1042"], "allow"
                    ),
                ),
                (1, e.CallStarted("k" * 64, 1, NOW, "allow")),
                (
                    1,
                    e.CallEnded(
                        "ok", ms=20, observation=f"{turn:064}", met=["read"], evidence=[f"order:O-1042:v{turn}"]
                    ),
                ),
                (0, e.NoteAdded("a note")),
            ):
                seq += 1
                state, _ = evolve(
                    state, e.Entry(fact=fact, turn=turn, ordinal=ordinal, revision=1, epoch=1, t=NOW + seq, seq=seq)
                )
            sizes[turn] = len(dumps(state))
        assert sizes[5_000] < sizes[50] + 20
        assert max(sizes.values()) < 800

    def test_of_sixteen_waiting_calls_is_a_few_kilobytes(self) -> None:
        waiting = [
            pending(
                "keyed",
                obj=f"order:O-{i}",
                label=f"toolu_{i}",
                args="a" * 64,
                action="b" * 64,
                rule="default",
                exclude=[1],
            )
            for i in range(16)
        ]
        assert len(dumps(run(*waiting))) < 6_000

    def test_keeps_the_numbers_of_fifty_notes_and_none_of_their_text(self) -> None:
        state = run()
        for seq in range(1, 200):
            state = apply(state, e.NoteAdded("long text " * 100), seq=seq)
        assert state.notes == list(range(150, 200))


class TestTables:
    @pytest.mark.parametrize("table", [CALL, APPROVAL, QUESTION])
    def test_allow_their_moves_and_no_others(self, table: dict[str, tuple[str, ...]]) -> None:
        for old, new in product(table, table):
            if new in table[old]:
                assert move(table, old, new) == new
            else:
                with pytest.raises(IllegalMove):
                    move(table, old, new)

    @pytest.mark.parametrize(("old", "new"), [(a, b) for a, b in product(CALL, CALL)])
    def test_of_calls_are_the_only_way_to_move_one(self, old: str, new: str) -> None:
        if new in CALL[old]:
            assert CallState(status=old).to(new).status == new
        else:
            with pytest.raises(IllegalMove):
                CallState(status=old).to(new)

    def test_end_where_the_contract_says(self) -> None:
        assert {status for status, following in CALL.items() if not following} == set(CALL_ENDS) - {"not_executed"}

    def test_every_stop_is_a_status_with_something_to_do(self) -> None:
        assert {status for status, _ in STOP_REASONS.values()} == {"budget_exhausted", "stalled", "needs_human"}
        assert all(status in RUN and advice.endswith(".") for status, advice in STOP_REASONS.values())


class TestLimits:
    @pytest.mark.parametrize("value", [0, -1, True, "3", 1.5, None])
    def test_must_be_whole_and_at_least_one(self, value: object) -> None:
        with pytest.raises(BadLimits, match="turns"):
            Limits.load({"turns": value})

    @pytest.mark.parametrize("limits", [{"repeats": 1}, {"probes": []}, {"probes": [-1]}, {"probes": "soon"}])
    def test_that_would_stop_or_break_every_run_are_refused(self, limits: dict[str, object]) -> None:
        with pytest.raises(BadLimits, match=next(iter(limits))):
            Limits.load(limits)

    def test_must_be_known(self) -> None:
        with pytest.raises(BadLimits, match="money"):
            Limits.load({"money": 1})

    def test_store_what_differs_alone(self) -> None:
        assert Limits.load({"turns": 5, "calls": 60}).dump() == {"turns": 5}


class TestFacts:
    """Single facts whose effect is easy to get wrong."""

    def test_a_question_that_nobody_can_answer_ends_its_call(self) -> None:
        state = apply(run(), e.CallJudged("a", "ask_user", "d", "host", verdict="deny", why="unattended"), 1)
        assert state.calls[1].status == "denied"

    def test_late_evidence_outranks_a_later_refusal(self) -> None:
        sent = call("executing", "opaque", key="k", maybe_sent=True, attempt=2)
        state = apply(run(sent), e.LateEvidence("ok", "k", effect_ref="M-1"), 1)
        for outcome in ("retryable", "declined", "fatal", "unknown"):
            after = apply(state, e.CallEnded(outcome), 1)
            assert (after.calls[1].status, after.calls[1].late["outcome"]) == ("unknown", "ok")

    def test_late_evidence_under_another_key_changes_nothing(self) -> None:
        state = run(call("unknown", "opaque", key="k"), t=NOW)
        assert apply(state, e.LateEvidence("ok", "other"), 1) == state

    def test_a_cancel_sorts_the_calls(self) -> None:
        state = run(
            call("waiting"),
            call("ready"),
            call("ready", "opaque", maybe_sent=True),
            call("waiting", "opaque", maybe_sent=True),
            call("executing"),
            call("done"),
        )
        after = [c.status for c in apply(state, e.CancelAsked()).calls.values()]
        assert after == ["withdrawn", "withdrawn", "unknown", "unknown", "executing", "done"]

    def test_a_cancel_clears_a_stop_but_that_for_integrity(self) -> None:
        assert apply(run(stop=Stop("stalled", "repeats")), e.CancelAsked()).stop is None
        assert apply(run(stop=Stop("needs_human", "integrity")), e.CancelAsked()).tampered

    @pytest.mark.parametrize("counter", ["repeats", "failures", "refusals", "claims"])
    @pytest.mark.parametrize("fact", [e.Resumed(), e.LimitsChanged({"turns": 99})])
    def test_going_on_zeroes_the_counter_that_stopped_it(self, counter: str, fact: e.Fact) -> None:
        state = run(stop=Stop("stalled", counter), n=Counts(repeats=9, failures=9, refusals=9, claims=9))
        after = apply(state, fact)
        assert (after.stop, getattr(after.n, counter)) == (None, 0)
        assert sum(getattr(after.n, c) for c in ("repeats", "failures", "refusals", "claims")) == 27

    def test_settling_the_last_unknown_call_clears_the_stop_by_itself(self) -> None:
        stop = Stop("needs_human", "unknown_effect")
        state = run(call("unknown", "opaque"), call("unknown", "opaque"), stop=stop)
        state = apply(state, e.CallSettled("done", "human", outcome="ok"), 1)
        assert state.stop == stop
        assert apply(state, e.CallSettled("not_executed", "human"), 2).stop is None

    def test_active_time_is_what_answers_and_outcomes_took(self) -> None:
        state = run(call("executing"), call("executing"), ask=Ask())
        state = apply(state, e.ModelFailed("429", 0, 7))
        state = apply(apply(state, e.CallEnded("ok", ms=20), 1), e.CallEnded("ok", ms=30), 2)
        assert state.n.ms == 57

    def test_time_never_goes_back(self) -> None:
        assert apply(run(t=NOW + 5), e.PauseAsked(), t=NOW).t == NOW + 5

    def test_facts_after_the_end_change_nothing(self) -> None:
        state = run(end="failed", t=NOW)
        for fact in (e.NoteAdded("x"), e.IncidentOpened("x"), e.SignedOff("x"), e.PayloadErased(1)):
            assert apply(state, fact) == state

    def test_the_stored_form_is_json_without_surprises(self) -> None:
        assert json.loads(dumps(RunState())) == {"v": 1}
