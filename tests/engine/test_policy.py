"""Strictest wins in any order; what cannot be told counts for deny and ask, and against allow."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.policy import STRICTNESS, BadPolicy, Policy, Verdict, judge, starter_default
from runs.engine.toolspec import Effect, Risk, ToolSpec, spec_of


def pay(ctx: Any, *, amount: str, note: str | None = None) -> None:
    """Pay."""


def tool(risk: Risk = Risk.MEDIUM, effect: Effect = Effect.OPAQUE) -> ToolSpec:
    return spec_of(pay, risk=risk, effect=effect, retention=60)


def rule(ident: str, effect: str, **fields: Any) -> dict[str, Any]:
    return {"id": ident, "effect": effect, "tools": ["pay"], **fields}


def verdict(
    *rules: dict[str, Any],
    args: dict[str, Any] | None = None,
    unattended: bool = False,
    risk: Risk = Risk.MEDIUM,
    **content: Any,
) -> Verdict:
    policy = Policy.load(7, {"rules": list(rules), **content})
    return judge(tool(risk), {"amount": "80.00"} if args is None else args, policy, starter=1, unattended=unattended)


effects = st.sampled_from(["allow", "ask", "deny"])


class TestStrictestWins:
    @given(st.lists(effects, min_size=1, max_size=6), st.integers(0, 999))
    def test_in_any_order(self, given_effects: list[str], seed: int) -> None:
        rules = [rule(f"r{i}", effect) for i, effect in enumerate(given_effects)]
        shuffled = random.Random(seed).sample(rules, len(rules))
        strictest = max(given_effects, key=STRICTNESS.__getitem__)
        assert verdict(*rules).verdict == verdict(*shuffled).verdict == strictest

    @given(st.lists(effects, max_size=4), effects)
    def test_and_one_more_rule_never_loosens(self, given_effects: list[str], more: str) -> None:
        rules = [rule(f"r{i}", effect) for i, effect in enumerate([*given_effects, "allow"])]
        before, after = verdict(*rules), verdict(*rules, rule("more", more))
        assert STRICTNESS[after.verdict] >= STRICTNESS[before.verdict]

    def test_and_the_trace_names_every_rule_that_spoke(self) -> None:
        found = verdict(rule("a", "allow"), rule("b", "ask"), rule("c", "deny", tools=["other"]))
        assert (found.rule, found.trace, found.policy) == ("b", ("a: allow", "b: ask"), 7)

    def test_and_the_shortest_expiry_of_what_asks(self) -> None:
        assert verdict(rule("a", "ask", expires=60), rule("b", "ask", expires=30), rule("c", "ask")).expires == 30


class TestWithoutARule:
    @pytest.mark.parametrize("default", ["allow", "ask", "deny"])
    def test_the_default_of_the_tool_answers(self, default: str) -> None:
        assert verdict(defaults={"pay": default}).verdict == default

    def test_a_tool_without_a_default_asks(self) -> None:
        assert verdict().verdict == "ask"

    def test_a_default_is_no_rule_and_does_not_outweigh_one(self) -> None:
        assert verdict(rule("a", "allow"), defaults={"pay": "deny"}).verdict == "allow"


UNKNOWN = {
    "the argument is absent": {},
    "it is no number": {"amount": "much"},
    "it is a real": {"amount": 80.0},
    "it is NaN": {"amount": "NaN"},
    "it is true": {"amount": True},
}


class TestThreeValues:
    @pytest.mark.parametrize("args", UNKNOWN.values(), ids=UNKNOWN.keys())
    @pytest.mark.parametrize("op", ["decimal_le", "decimal_gt"])
    def test_what_cannot_be_told_counts_for_deny_and_ask_and_against_allow(self, args: dict[str, Any], op: str) -> None:
        when = [{"arg": "amount", "op": op, "value": "100.00"}]
        assert verdict(rule("r", "deny", when=when), args=args, defaults={"pay": "allow"}).verdict == "deny"
        assert verdict(rule("r", "ask", when=when), args=args, defaults={"pay": "allow"}).verdict == "ask"
        assert verdict(rule("r", "allow", when=when), args=args, defaults={"pay": "deny"}).verdict == "deny"

    @pytest.mark.parametrize(
        ("op", "value", "amount", "holds"),
        [
            ("decimal_le", "80.00", "80.0", True), ("decimal_le", "79.99", "80.00", False),
            ("decimal_gt", "500.00", "500.01", True), ("decimal_gt", "500.00", "500.00", False),
            ("decimal_gt", "0.1", "0.30000000000000004", True), ("eq", "80.00", "80.00", True), ("eq", 80, "80", False),
            ("eq", 1, True, False), ("in", ["a", "b"], "b", True), ("in", [1], True, False), ("in", ["ab"], "a", False),
        ],
    )  # fmt: skip
    def test_what_can_be_told_is_told_exactly(self, op: str, value: Any, amount: Any, holds: bool) -> None:
        found = verdict(
            rule("r", "deny", when=[{"arg": "amount", "op": op, "value": value}]),
            args={"amount": amount},
            defaults={"pay": "allow"},
        )
        assert found.verdict == ("deny" if holds else "allow")

    def test_one_false_condition_silences_a_rule(self) -> None:
        when = [{"arg": "absent", "op": "eq", "value": 1}, {"arg": "amount", "op": "eq", "value": "1"}]
        assert verdict(rule("r", "deny", when=when), defaults={"pay": "allow"}).verdict == "allow"


class TestFloors:
    @pytest.mark.parametrize("off", [["pay"], ["*"], ["other", "pay"]])
    def test_a_kill_switch_is_above_every_rule(self, off: list[str]) -> None:
        assert verdict(rule("a", "allow"), off=off).rule == "kill-switch"
        assert verdict(rule("a", "allow"), off=off).verdict == "deny"

    @pytest.mark.parametrize("rules", [[], [rule("a", "allow")], [rule("a", "ask")], [rule("*", "allow", tools=["*"])]])
    def test_high_risk_asks_and_excludes_the_starter(self, rules: list[dict[str, Any]]) -> None:
        found = verdict(*rules, risk=Risk.HIGH, defaults={"pay": "allow"})
        assert (found.verdict, found.exclude) == ("ask", (1,))

    def test_high_risk_does_not_soften_a_deny(self) -> None:
        assert verdict(rule("a", "deny"), risk=Risk.HIGH).verdict == "deny"

    def test_the_policy_may_raise_or_lower_a_risk(self) -> None:
        assert verdict(rule("a", "allow"), **{"risk": Risk.LOW}).verdict == "allow"
        high = Policy.load(1, {"risk": {"pay": "high"}, "defaults": {"pay": "allow"}})
        low = Policy.load(1, {"risk": {"pay": "low"}, "defaults": {"pay": "allow"}})
        assert judge(tool(Risk.LOW), {}, high, starter=1, unattended=False).verdict == "ask"
        assert judge(tool(Risk.HIGH), {}, low, starter=1, unattended=False).verdict == "allow"

    def test_what_asks_is_denied_when_nobody_watches(self) -> None:
        found = verdict(rule("a", "ask"), unattended=True)
        assert (found.verdict, found.rule) == ("deny", "a")
        assert verdict(rule("a", "allow"), unattended=True).verdict == "allow"

    def test_a_rule_may_exclude_the_starter(self) -> None:
        assert verdict(rule("a", "ask", exclude_starter=True), rule("b", "ask")).exclude == (1,)
        assert verdict(rule("a", "allow", exclude_starter=True), rule("b", "ask")).exclude == ()


@pytest.mark.parametrize(
    ("effect", "risk", "default"),
    [
        (Effect.READ, Risk.LOW, "allow"), (Effect.REPEATABLE, Risk.MEDIUM, "allow"), (Effect.READ, Risk.HIGH, "ask"),
        (Effect.KEYED, Risk.LOW, "ask"), (Effect.LOOKUP, Risk.LOW, "ask"), (Effect.OPAQUE, Risk.LOW, "ask"),
    ],
)  # fmt: skip
def test_the_starter_policy_lets_run_what_leaves_nothing_behind(effect: Effect, risk: Risk, default: str) -> None:
    assert starter_default(tool(risk, effect)) == default


REFUSED = {
    "an unknown operator": {"rules": [rule("r", "deny", when=[{"arg": "amount", "op": "matches", "value": "x"}])]},
    "an unknown verdict": {"rules": [rule("r", "permit")]},
    "an unknown default": {"defaults": {"pay": "maybe"}},
    "an unknown risk": {"risk": {"pay": "extreme"}},
    "an unknown part": {"rule": []},
    "an unknown field of a rule": {"rules": [rule("r", "deny", unless=[])]},
    "an unknown field of a condition": {
        "rules": [rule("r", "deny", when=[{"arg": "a", "op": "eq", "value": 1, "not": True}])]
    },
    "a condition without an operator": {"rules": [rule("r", "deny", when=[{"arg": "a", "value": 1}])]},
    "conditions that are no list": {"rules": [rule("r", "deny", when={"arg": "a", "op": "eq", "value": 1})]},
    "tools that are one text": {"rules": [rule("r", "deny", tools="pay")]},
    "a kill switch that is one text": {"off": "pay"},
    "a rule without tools": {"rules": [{"id": "r", "effect": "deny"}]},
    "a rule without a name": {"rules": [{"effect": "deny", "tools": ["pay"]}]},
    "a name too long for its column": {"rules": [rule("r" * 65, "deny")]},
    "an expiry before now": {"rules": [rule("r", "ask", expires=-1)]},
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED.keys())
def test_a_policy_that_could_be_read_in_two_ways_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy, match="policy 7"):
        Policy.load(7, json.loads(json.dumps(content)))
