"""Why a call is allowed, asked or denied: the gate's own judgement, the rules that lost, and who could decide now."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs import rights
from runs.catalog import spec
from runs.engine.policy import HIGH_RISK, STRICTNESS, Condition, Policy, Rule, Verdict, judge
from runs.engine.toolspec import InvalidArguments, ToolSpec
from runs.models import Agent, Call
from runs.queries import words
from runs.queries.display import visible
from runs.queries.policies import COMPARE, VERDICT, value_words

CALL = re.compile(r"R-?(\d{1,18})\s*[#:]?\s*(\d{1,6})\.(\d{1,4})", re.IGNORECASE)
NOT: dict[str, Any] = {
    "eq": gettext_lazy("is not"), "in": gettext_lazy("is not one of"), "decimal_le": gettext_lazy("is not ≤"),
    "decimal_gt": gettext_lazy("is not >"),
}  # fmt: skip
STANDS: dict[str, Any] = {
    "decides": gettext_lazy("decides"), "weaker": gettext_lazy("weaker"), "same": gettext_lazy("agrees"),
    "no match": gettext_lazy("no match"),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One rule of the trace: its sign, whether it decides, is weaker, agrees or does not match, and why."""

    name: str
    sign: words.Sign
    stands: str
    told: list[str]

    @property
    def word(self) -> Any:
        """How it stands, in a word."""
        return STANDS[self.stands]


@dataclass(frozen=True)
class Candidate:
    """An operator, and why they could not decide; empty if they could."""

    person: User
    why_not: str


@dataclass
class Explanation:
    """What the policy says about one call. `invalid` says why the call would never be judged."""

    tool: str
    headline: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    invalid: str = ""
    verdict: Verdict | None = None
    sign: words.Sign | None = None
    trace: list[Step] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    past: Call | None = None
    why: str = ""

    @property
    def able(self) -> int:
        """How many could decide."""
        return sum(not one.why_not for one in self.candidates)


def past_call(text: str) -> Call | None:
    """The call that somebody names as R-12 #3.1, or None."""
    found = CALL.fullmatch(text.strip())
    if found is None:
        return None
    run, turn, ordinal = map(int, found.groups())
    rows = Call.objects.select_related("run__starter").filter(run=run, turn=turn, ordinal=ordinal)
    return rows.exclude(effect="host").first()


def explain(
    policy: Policy, tool: str, arguments: str, starter: int, *, unattended: bool = False, agent: Agent | None = None
) -> Explanation:
    """Judge a call as the gate would; `arguments` is JSON. An agent that lacks the tool could never propose it."""
    known = spec(tool)
    shown = Explanation(tool)
    if known is None:
        shown.invalid = _("There is no tool of this name: such a call is invalid and never judged.")
        return shown
    if agent is not None and tool not in agent.current.definition.get("tools", []):
        shown.invalid = _("{agent} does not have this tool: such a call is invalid and never judged.").format(
            agent=agent.name
        )
        return shown
    try:
        checked = json.loads(known.check(arguments))
    except InvalidArguments as error:
        shown.invalid = _(
            "These arguments do not fit the tool: {why}. Such a call is invalid and never judged."
        ).format(why=visible(str(error)))
        return shown
    return _judged(shown, known, checked, policy, starter, unattended)


def explain_past(policy: Policy, call: Call) -> Explanation:
    """Judge a call that was made, by `policy`: its own arguments, starter and watch."""
    known, shown = spec(call.tool), Explanation(call.tool, past=call)
    if known is None:
        shown.invalid = _("The tool of this call is not installed any more: it would be denied.")
        return shown
    if call.status == "invalid":
        shown.invalid = _("This call was invalid: {why}").format(why=visible(call.why))
        return shown
    unattended = '"un":true' in call.run.state
    return _judged(shown, known, call.values(), policy, call.run.starter_id, unattended)


def _judged(
    shown: Explanation, known: ToolSpec, arguments: dict[str, Any], policy: Policy, starter: int, unattended: bool
) -> Explanation:
    said = judge(known, arguments, policy, starter=starter, unattended=unattended)
    shown.headline, shown.arguments = words.headline(known.name, arguments), arguments
    shown.verdict, shown.sign, shown.why = said, VERDICT[said.verdict], visible(said.why)
    shown.trace = _trace(known.name, arguments, policy, said)
    if said.verdict == "ask":
        shown.candidates = candidates(said.exclude)
    return shown


def candidates(excluded: tuple[int, ...]) -> list[Candidate]:
    """Everybody who may decide by their groups; those who are excluded come last, with the reason."""
    able = User.objects.filter(is_active=True, groups__name__in=rights.ACTS["decide"]).distinct().order_by("username")
    found = [Candidate(one, _("started the run") if one.pk in excluded else "") for one in able]
    return sorted(found, key=lambda one: one.why_not != "")


def _trace(tool: str, arguments: dict[str, Any], policy: Policy, said: Verdict) -> list[Step]:
    """Each rule with what became of it. Which match is the engine's word; why is told from the same conditions."""
    matching = dict(entry.rsplit(": ", 1) for entry in said.trace)
    known = {HIGH_RISK.id: HIGH_RISK} | {rule.id: rule for rule in policy.rules}
    steps = [
        Step(
            rule.id, VERDICT[rule.effect], _stands(rule.id, matching, said) if rule.id in matching else "no match",
            [visible(rule.why)] if rule is HIGH_RISK else why_of(rule, tool, arguments),
        )
        for rule in known.values()
        if rule.id in matching or rule is not HIGH_RISK
    ]  # fmt: skip
    extra = {"default": _("the default, as no rule matches"), "kill-switch": _("the tool is switched off")}
    for name, effect in matching.items():
        if name not in known:
            steps.append(Step(name, VERDICT[effect], _stands(name, matching, said), [extra.get(name, "")]))
    return sorted(steps, key=lambda step: ("decides", "same", "weaker", "no match").index(step.stands))


def _stands(name: str, matching: dict[str, str], said: Verdict) -> str:
    if name == said.rule:
        return "decides"
    return "same" if STRICTNESS[matching[name]] == STRICTNESS[matching[said.rule]] else "weaker"


def why_of(rule: Rule, tool: str, arguments: dict[str, Any]) -> list[str]:
    """Why a rule applies to a call or not, one line for each thing that speaks."""
    if tool not in rule.tools and "*" not in rule.tools:
        return [_("it is about {tools}").format(tools=", ".join(rule.tools))]
    told = [_condition(condition, arguments, rule) for condition in rule.when]
    return told or [_("it always applies to this tool")]


def _condition(condition: Condition, arguments: dict[str, Any], rule: Rule) -> str:
    holds, value = condition.holds(arguments), value_words(condition.value)
    if holds is None:
        counts = _("counts as no match") if rule.effect == "allow" else _("counts as a match")
        return f"{visible(condition.arg)}: " + _("cannot be compared, which {counts}").format(counts=counts)
    given = visible(str(arguments[condition.arg]))
    compare = COMPARE[condition.op] if holds else NOT[condition.op]
    return f"{visible(condition.arg)} {given} {compare} {value}"


__all__ = ["Explanation", "candidates", "explain", "explain_past", "past_call", "why_of"]
