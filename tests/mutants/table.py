"""The table of mutants: for each a promise, the exact text that breaks it, and the tests that must notice.

A test that cannot fail proves nothing. Each mutant is one way in which somebody could break a promise of DESIGN.md 4
while the code still looks right. `docs/mutants.md` is generated from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

APPEND, LEASE, GATE, CHAIN = (f"runs/journal/{name}.py" for name in ("append", "lease", "gate", "chain"))
LOOP, ANSWERS, FLIGHTS, WATCH = (f"runs/runner/{name}.py" for name in ("loop", "answers", "flights", "watch"))
STEP, EVOLVE, STATE = (f"runs/engine/{name}.py" for name in ("next_step", "evolve", "state"))
DECIDE, ACTING = "runs/actions/approvals.py", "runs/actions/acting.py"

T_APPEND = "tests/journal/test_append.py::TestAStalePicture::"
T_GATE = "tests/journal/test_gate.py::"
T_STEP = "tests/engine/test_next_step.py::"
T_SEND = "tests/stories/test_sending.py::"
T_PLAY = "tests/stories/test_minimal_executor.py::"
T_LEASE = "tests/journal/test_lease.py::"
T_DOUBT = "tests/journal/test_doubt.py::"
T_WATCH = "tests/journal/test_watch.py::"

# How a test may die: it saw what should not be. Anything else (an import, a fixture, a crash) is no proof.
ASSERTED = r"assert |AssertionError|Failed: DID NOT RAISE"


@dataclass(frozen=True)
class Patch:
    """`old` stands exactly once in `file`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """`invariant` is a number of DESIGN.md 4; every test of `tests` must fail, by an error that `dies_by` matches."""

    name: str
    invariant: int
    promise: str
    patches: tuple[Patch, ...]
    tests: tuple[str, ...]
    dies_by: str = ASSERTED
    postgresql: bool = False  # can be seen there alone


def m(
    name: str, invariant: int, promise: str, file: str, old: str, new: str, *tests: str, postgresql: bool = False
) -> Mutant:
    """A mutant of one patch."""
    return Mutant(name, invariant, promise, (Patch(file, old, new),), tests, postgresql=postgresql)


MUTANTS: tuple[Mutant, ...] = (
    # --- append and the record ----------------------------------------------------------------------------------------
    m(
        "seq dropped", 1, "nobody writes on a picture to which others have appended",
        APPEND, '"id = %s AND epoch = %s AND seq = %s", [old.run, old.epoch, old.seq]',
        '"id = %s AND epoch = %s", [old.run, old.epoch]',
        f"{T_APPEND}test_of_the_sequence_does_not_even_park_over_what_a_person_did",
    ),
    m(
        "epoch dropped", 3, "who lost the lease writes nothing, also if nobody appended since",
        APPEND, '"id = %s AND epoch = %s AND seq = %s", [old.run, old.epoch, old.seq]',
        '"id = %s AND seq = %s", [old.run, old.seq]',
        f"{T_APPEND}test_of_the_epoch_alone_is_refused_although_nobody_appended",
        f"{T_PLAY}test_the_epoch_alone_fences_a_worker_that_was_frozen_while_nobody_appended",
    ),
    m(
        "parked lease not fenced", 3, "who gave the lease back writes nothing",
        APPEND, '        where += " AND lease_until IS NOT NULL"\n', "        pass\n",
        f"{T_APPEND}test_of_a_lease_that_was_let_go_is_refused",
    ),
    m(
        "policy not fenced", 5, "what was judged by a policy that has moved is not written",
        APPEND, "    if policy is not None:\n", "    if policy is None:\n        policy = 0\n    if policy < 0:\n",
        f"{T_APPEND}test_of_the_policy_writes_nothing",
        f"{T_APPEND}test_that_judged_with_an_old_policy_is_refused",
        f"{T_PLAY}test_a_policy_that_moved_is_noticed_by_the_append_that_judges",
    ),
    m(
        "publish before commit", 4, "hints go out after the commit",
        APPEND, "transaction.on_commit(lambda: notify.appended(old.run, seq, wake=due == 0, inbox=news))",
        "notify.appended(old.run, seq, wake=due == 0, inbox=news)",
        "tests/journal/test_notify.py::test_nobody_is_told_of_what_is_not_committed",
    ),
    m(
        "previous hash not linked", 1, "each event's hash holds that of the event before it",
        CHAIN, "*digests, body, previous.hex()]", "*digests, body]",
        "tests/journal/test_chain.py::TestVerify::test_names_an_event_whose_hash_was_made_to_fit",
    ),
    m(
        "previous hash not unique", 1, "one event has one successor: the record cannot fork",
        "runs/migrations/0001_initial.py",
        "('pk', models.CompositePrimaryKey('run_id', 'seq', blank=True, editable=False, primary_key=True,"
        " serialize=False)),",
        "('id', models.BigAutoField(primary_key=True)),",
        "tests/journal/test_chain.py::TestTriggers::test_refuse_a_second_event_in_one_place",
    ),
    m(
        "rows not checked by acts", 17, "a run whose row was changed takes no act, and the change is recorded",
        ACTING, "                check_head(run)\n", "                pass\n",
        "tests/journal/test_integrity.py::TestAChangedStateIsRecorded::"
        "test_by_whoever_acts_first_on_a_waiting_run[pause-pause_by_sql]",
    ),
    m(
        "rows not checked by workers", 17, "a run whose row was changed starts nothing",
        LOOP, "opening = json.loads(check_head(run).payload or \"\")",
        "from runs.journal.integrity import opening as read\n\n    opening = read(run.pk)",
        "tests/journal/test_integrity.py::test_a_worker_stops_a_run_whose_state_was_changed[pause_by_sql]",
    ),
    # --- leases and clocks --------------------------------------------------------------------------------------------
    m(
        "claim without due", 3, "a message that comes again costs no epoch",
        LEASE, "WHERE id = %s AND due_at <= {clock} AND NOT", "WHERE id = %s AND NOT",
        f"{T_LEASE}TestClaim::test_is_refused_while_somebody_holds_it",
        f"{T_PLAY}test_a_claim_needs_that_the_run_is_due",
    ),
    m(
        "worker clock instead of database clock", 3, "a lease ends by the database's clock, whatever a host believes",
        LOOP, "        return lease.local() + self.skew\n",
        "        return time.time_ns() // 1000\n",
        f"{T_LEASE}TestTheClock::test_of_a_host_that_is_set_back_does_not_lengthen_a_lease",
    ),
    m(
        "host clock for due times", 3, "what is due, and what has expired, is told by the database's clock",
        LEASE, '    if connection.vendor != "postgresql":\n        return', "    if True:\n        return",
        f"{T_LEASE}TestTheClock::test_is_the_databases", postgresql=True,
    ),
    m(
        "skew taken after the answer", 3, "a worker frozen in mid-beat believes that its lease ended too early",
        LEASE, "        return clock - before\n", "        return clock - local()\n",
        f"{T_LEASE}TestBeat::test_never_makes_the_holder_believe_in_an_earlier_time",
    ),
    m(
        "slow answer believed", 3, "what follows a partition is not dated into the future",
        LEASE, "local() - before <= QUICK", "local() - before <= QUICK * 100",
        f"{T_LEASE}TestBeat::test_an_answer_that_was_long_in_coming_puts_no_times_into_the_future", postgresql=True,
    ),
    m(
        "send after the lease", 3, "a worker whose lease is over sends nothing",
        FLIGHTS, "        if not may_send():\n", "        if may_send is None:\n",
        "tests/journal/test_flights.py::test_a_worker_whose_lease_is_over_sends_nothing",
    ),
    # --- intents, keys, doubt -----------------------------------------------------------------------------------------
    Mutant(
        "intent after send", 2, "an intent is committed before the first byte of its effect leaves",
        (
            Patch(LOOP, "        parked = not launches and not self.flying\n",
                  "        parked = not launches and not self.flying\n"
                  "        for flight in launches:\n"
                  "            if flight.how != 'ask':\n                flight.launch(self.landed)\n"),
            Patch(LOOP, "            self.flying[flight.ordinal] = flight\n            flight.launch(self.landed)\n",
                  "            self.flying[flight.ordinal] = flight\n"
                  "            if flight.how == 'ask':\n                flight.launch(self.landed)\n"),
        ),
        (f"{T_SEND}test_nothing_leaves_when_the_append_of_its_intent_is_refused",),
    ),
    m(
        "key recomputed with the attempt", 7, "every attempt carries the key of the first intent",
        LOOP, "key = call.key or operation_key(self.picture.uid, turn, ordinal, call.revision,",
        "key = operation_key(self.picture.uid, turn, ordinal, call.revision + call.attempt,",
        f"{T_SEND}test_every_attempt_carries_the_key_of_the_intent",
    ),
    m(
        "resend under another key", 7, "a resend carries the stored key",
        LOOP, "return self._flight(draft, ordinal, how, args, call.key)",
        "return self._flight(draft, ordinal, how, args, f\"{call.key}-{number}\")",
        f"{T_SEND}test_a_resend_carries_the_key_of_the_intent",
    ),
    m(
        "opaque retried", 7, "only reads and repeat-safe calls are done again by their class",
        STEP, 'call.effect in ("read", "repeatable") and ordinal', 'call.effect != "keyed" and ordinal',
        f"{T_STEP}TestRule1Truth::test_what_may_not_be_repeated_is_not[opaque]",
        f"{T_STEP}TestRule1Truth::test_what_may_not_be_repeated_is_not[lookup]",
        f"{T_SEND}test_what_may_have_been_done_is_not_done_again",
    ),
    m(
        "unknown retried", 7, "an unknown outcome is not a retryable one",
        EVOLVE, 'if fact.outcome == "retryable" and again:', 'if fact.outcome in ("retryable", "unknown") and again:',
        f"{T_SEND}test_what_may_have_been_done_is_not_done_again",
    ),
    m(
        "lost worker read as retryable", 7, "a call found begun and not ended is unknown",
        STEP, 'return e.CallEnded("unknown", status="worker', 'return e.CallEnded("retryable", status="worker',
        f"{T_STEP}TestRule1Truth::test_a_call_that_nobody_holds_is_unknown",
    ),
    m(
        "failure without proof believed", 7, "an effect that failed without proof that nothing happened is unknown",
        FLIGHTS, "    if claims_nothing and not tool.spec.effect.again and outcome.proof is None:\n",
        "    if claims_nothing and tool is None:\n",
        "tests/journal/test_flights.py::test_a_failed_effect_without_proof_is_unknown",
    ),
    m(
        "a resend's refusal believed", 7, "a refusal of a resend answers the second request and settles nothing",
        ANSWERS, "    found = outcome.kind == Kind.OK\n", "    found = outcome.kind in (Kind.OK, Kind.DECLINED)\n",
        f"{T_SEND}test_a_refusal_of_a_resend_answers_the_second_request_and_settles_nothing",
    ),
    m(
        "the second request's refusal believed", 7, "after a person's again only ok settles",
        EVOLVE, 'if fact.outcome == "unknown" or ((call.late or call.maybe_sent) and fact.outcome != "ok"):',
        'if fact.outcome == "unknown":',
        f"{T_GATE}test_a_refusal_of_the_second_request_leaves_the_first_in_doubt",
    ),
    m(
        "resend past the gate", 7, "a resend passes the same gate as a start",
        LOOP, 'if how == "resend" and not gate.may_resend(draft, ordinal, args):', 'if how == "":',
        f"{T_SEND}test_a_resend_passes_the_gate_as_a_start_does",
    ),
    m(
        "resend of an old key", 7, "no resend once the key is older than half of its life",
        STATE, "if self.resend_until > max(self.due, now) and not cancelled:",
        "if self.resend_until and not cancelled:",
        f"{T_STEP}TestRule5DoubtFirst::test_a_machine_asks_first[the key is too old]",
    ),
    m(
        "look-up before the deadline", 7, "a look-up counts only after the deadline of the call",
        STATE, 'return "lookup", max(self.due, self.deadline)', 'return "lookup", self.due',
        f"{T_STEP}TestRule5DoubtFirst::test_a_machine_asks_first[a look-up before the deadline would prove nothing]",
    ),
    m(
        "late evidence dropped", 2, "what a former holder found out is kept",
        LOOP, '        if flight.effect and flight.how != "lookup":\n', "        if flight is None:\n",
        "tests/journal/test_late.py::TestWhatLandedInTheHandsOfAWorkerThatLostItsLease::test_is_handed_in_as_late_evidence",
    ),
    m(
        "look not taken", 7, "of two who read that a look is due one takes it",
        WATCH,
        "    if not Call.objects.filter(**place, watch_at=call.watch_at).update(watch_at=hold):\n        return\n",
        "    Call.objects.filter(**place).update(watch_at=hold)\n",
        f"{T_WATCH}TestTwoLooksAtOnce::test_that_both_read_that_it_is_due_are_one",
    ),
    m(
        "look at a changed record", 7, "the remote is asked about what the record says, not about what a row says",
        WATCH, '        if (sent["key"], sent["request"]) != (call.key, digest(call.arguments)):\n',
        "        if digest(call.arguments) == sent:\n",
        f"{T_WATCH}TestARecordThatWasChanged::test_is_not_asked_about[key]",
        f"{T_WATCH}TestARecordThatWasChanged::test_is_not_asked_about[arguments]",
    ),
    m(
        "a look that told nothing counts", 7, "a look that told nothing is made up for",
        WATCH, "lease.now(), told=absent)", "lease.now(), told=True)",
        f"{T_WATCH}TestALook::test_that_told_nothing_is_made_up_for_and_not_for_ever",
    ),
    m(
        "two effects in flight", 7, "at most one effect of a run is in flight",
        STEP, "        effect_in_the_way = effect_in_the_way or call.has_effect\n", "",
        f"{T_STEP}TestRule6Start::test_siblings[one effect at a time, in order]",
    ),
    # --- gate, approvals, people --------------------------------------------------------------------------------------
    Mutant(
        "approval matched by call id only", 6, "an approval binds the bytes that were shown, not the place of a call",
        (
            Patch(GATE, "if said != stored or row.digest != call.action or row.digest != bound(draft, ordinal, args):",
                  "if said != stored:"),
            Patch(GATE, 'decisions__vote="approve", decisions__digest=row.digest)', 'decisions__vote="approve")'),
        ),
        (f"{T_GATE}TestAnApproval::test_of_other_bytes_does_not_stand_for_its_call",),
    ),
    m(
        "decision on other bytes taken", 6, "a vote on bytes that have changed since is refused",
        DECIDE, "    if action_digest != call.action:\n", "    if not action_digest:\n",
        f"{T_GATE}TestADecision::test_on_other_bytes_is_refused",
    ),
    m(
        "stored arguments not compared", 6, "the bytes that run are the bytes that were shown",
        GATE, "    if digest(args) != call.args:\n", "    if not args:\n",
        f"{T_GATE}TestAnApproval::test_of_other_arguments_is_an_integrity_stop",
    ),
    m(
        "approval not consumed", 6, "an approval is consumed by the start of its call",
        "runs/journal/rows.py", '            _move(approvals, "approved", status="consumed")\n', "            pass\n",
        f"{T_GATE}TestAnApproval::test_lets_its_call_start_once_and_is_consumed",
    ),
    m(
        "voters not read again", 6, "the right of a voter is read again at the start",
        GATE, 'any(v.pk not in excluded and rights.may(v, "decide") for v in voters)',
        "any(v.pk not in excluded for v in voters)",
        f"{T_GATE}TestAnApproval::test_is_asked_for_anew_when_its_voter_lost_the_right[group]",
        f"{T_GATE}test_a_resend_needs_a_voter_who_may_still_decide",
    ),
    m(
        "wider exclusion ignored", 5, "an approval falls when more people are excluded than were when it was asked",
        GATE, 'return "holds" if entitled and excluded <= set(call.exclude) else "lapsed"',
        'return "holds" if entitled else "lapsed"',
        f"{T_GATE}TestAnApproval::test_is_asked_for_anew_when_the_exclusion_is_wider_whoever_voted",
    ),
    m(
        "approved means allowed", 5, "a deny at the start outweighs an approval",
        GATE, 'if verdict.verdict != "deny" and call.approval_status in', "if call.approval_status in",
        f"{T_GATE}TestAnApproval::test_falls_with_a_deny",
        f"{T_GATE}TestAnApproval::test_falls_with_a_kill_switch",
    ),
    m(
        "first rule wins", 5, "the strictest rule wins, whatever the order",
        "runs/engine/policy.py", "first = max(matching, key=lambda rule: STRICTNESS[rule.effect])",
        "first = matching[0]",
        "tests/engine/test_policy.py::TestStrictestWins::test_and_the_trace_names_every_rule_that_spoke",
    ),
    m(
        "cannot tell counts for allow", 5, "what cannot be computed never allows",
        "runs/engine/policy.py", 'return False not in truths and (None not in truths or self.effect != "allow")',
        "return False not in truths",
        "tests/engine/test_policy.py::TestThreeValues::"
        "test_what_cannot_be_told_counts_for_deny_and_ask_and_against_allow",
    ),
    m(
        "expiry not looked at", 8, "an approval past its expiry is not decided, whoever was to record that",
        DECIDE, "    if 0 < call.expires <= draft.now:\n", "    if call.expires < 0:\n",
        f"{T_GATE}TestADecision::test_after_the_expiry_is_too_late_though_nobody_has_recorded_it",
    ),
    m(
        "winner not named", 8, "the loser of a race is told who won",
        DECIDE, '    if approval.status != "pending":\n', '    if approval.status == "":\n',
        f"{T_GATE}TestADecision::test_after_another_names_who_won",
    ),
    m(
        "excluded starter decides", 5, "who is excluded does not decide",
        DECIDE, "    if person.pk in call.exclude:\n", "    if person.pk is None:\n",
        f"{T_GATE}TestAnApproval::test_is_asked_for_anew_when_its_voter_is_now_excluded",
    ),
    # --- cancel, messages, finish -------------------------------------------------------------------------------------
    m(
        "cancel leaves ready calls", 13, "a cancel withdraws what has not started",
        EVOLVE, '    touched = state.having("waiting", "ready")\n', '    touched = state.having("waiting")\n',
        f"{T_DOUBT}TestCancelling::test_withdraws_a_call_that_was_allowed_and_never_started",
    ),
    m(
        "cancel forgets doubt", 13, "a cancelled call that may have been sent stays unknown",
        EVOLVE, 'c.to("unknown" if c.maybe_sent else "withdrawn")', 'c.to("withdrawn")',
        f"{T_DOUBT}TestCancelling::test_keeps_a_call_in_doubt_that_was_to_be_sent_again",
    ),
    m(
        "cancelled with an unknown effect", 13, "a cancelled run with an unknown effect goes to people before it ends",
        STEP, "    if s.unknown:\n", "    if s.unknown and not s.state.cancel:\n",
        f"{T_STEP}TestRule2Cancel::test_cancelling_is_not_undoing[only a person can tell]",
    ),
    m(
        "resend after cancel", 13, "nothing is sent again after a cancel",
        STATE, "if self.resend_until > max(self.due, now) and not cancelled:",
        "if self.resend_until > max(self.due, now):",
        f"{T_STEP}TestRule2Cancel::test_cancelling_is_not_undoing[a resend would cause the effect]",
    ),
    m(
        "repeated id accepted", 10, "of an answer that repeats an id nothing runs",
        "runs/engine/messages.py", 'repeated or not all(map(LABEL.match, labels))',
        "not all(map(LABEL.match, labels))",
        "tests/engine/test_messages.py::TestAnAnswer::test_of_which_nothing_may_run[it repeats an id]",
        f"{T_PLAY}test_nothing_of_a_malformed_answer_runs_and_the_same_turn_is_asked_again[repeated id]",
    ),
    m(
        "cut arguments accepted", 10, "of an answer whose arguments do not parse nothing runs",
        "runs/engine/messages.py", "not all(_is_object(call.arguments) for call in found)", "False",
        "tests/engine/test_messages.py::TestAnAnswer::test_of_which_nothing_may_run[its arguments are cut]",
        "tests/engine/test_messages.py::TestAnAnswer::test_of_which_nothing_may_run[one of several is broken]",
    ),
    m(
        "old evidence accepted", 11, "success needs evidence newer than the last change",
        "runs/engine/acceptance.py", "for other in proofs if other.seq > proof.seq for key",
        "for other in proofs if other.seq < 0 for key",
        "tests/engine/test_acceptance.py::TestAFinish::test_lacks_evidence_older_than_a_change",
    ),
    m(
        "finish without acceptance", 11, "a claim is not success",
        ANSWERS, "    if lacks := unread or acceptance.missing(draft.state.checks, cited, _proofs(draft)):\n",
        "    if lacks := unread:\n",
        f"{T_PLAY}test_a_finish_without_its_evidence_is_refused_with_what_is_missing",
    ),
    m(
        "inputs not escaped", 15, "what comes from outside is data, never markup",
        "runs/engine/messages.py", '{escape(str(v["value"]))}</{tag}>', '{v["value"]}</{tag}>',
        "tests/engine/test_messages.py::TestOpening::test_marks_each_input_with_its_trust_and_escapes_it",
    ),
)  # fmt: skip
