"""judge(call, policy): allow, ask or deny, with the reason and the trace. Strictest wins; order never matters.

Conditions have three values: what cannot be computed counts for deny and ask, and against allow (DESIGN.md 7). The
engine knows no roles and no database: `journal/gate.py` brings the current policy.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runs.engine.frozen import Frozen
from runs.engine.toolspec import Effect, Risk, ToolSpec

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
Effects = Literal["allow", "ask", "deny"]


class BadPolicy(ValueError):
    """A policy that could not be enforced; the message says where and why."""


class Exact(BaseModel):
    """Stored JSON that is read in one way only: unknown names and near misses are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Condition(Exact):
    """A typed condition on one argument."""

    arg: str
    op: Literal["eq", "in", "decimal_le", "decimal_gt"]
    value: Any

    def holds(self, args: Mapping[str, Any]) -> bool | None:
        """Whether it holds; None where that cannot be told."""
        try:
            return OPERATORS[self.op](args[self.arg], self.value)
        except (KeyError, TypeError, ValueError, InvalidOperation):
            return None


class Rule(Exact):
    """`effect` over `tools` (``*`` is all) where every condition holds. `expires` is in seconds, 0 for never."""

    id: str = Field(max_length=64)
    effect: Effects
    tools: tuple[str, ...]
    when: tuple[Condition, ...] = ()
    why: str = ""
    exclude_starter: bool = False
    expires: int = Field(default=0, ge=0)

    def applies(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether the rule speaks about this call, reading "cannot tell" as its effect demands."""
        if tool not in self.tools and "*" not in self.tools:
            return False
        truths = [condition.holds(args) for condition in self.when]
        return False not in truths and (None not in truths or self.effect != "allow")


class Policy(Exact):
    """One immutable, numbered version: defaults and risks by tool, tools switched off (``*`` is all), rules."""

    number: int
    defaults: dict[str, Effects] = {}
    risk: dict[str, Risk] = {}
    off: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    @classmethod
    def load(cls, number: int, content: Mapping[str, Any]) -> "Policy":
        """Parse stored content. Raises `BadPolicy` for anything that could be read in two ways."""
        try:
            return cls.model_validate({**content, "number": number})
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors())
            raise BadPolicy(f"policy {number}: {'; '.join(problems)}") from error


class Verdict(Frozen):
    """What the policy says about a call. `exclude` are people who may not decide; `expires` seconds, 0 for never."""

    verdict: str
    rule: str
    why: str
    policy: int
    exclude: tuple[int, ...] = ()
    expires: int = 0
    trace: tuple[str, ...] = ()


HIGH_RISK = Rule(
    id="high-risk", effect="ask", tools=("*",), why="high risk: another person decides", exclude_starter=True
)


def judge(spec: ToolSpec, args: Mapping[str, Any], policy: Policy, *, starter: int, unattended: bool) -> Verdict:
    """The verdict on one call: kill switches, then the strictest of the matching rules and the floor for high risk."""
    name = spec.name
    matching = [rule for rule in policy.rules if rule.applies(name, args)]
    if not matching:
        default = policy.defaults.get(name, "ask")
        matching = [Rule(id="default", effect=default, tools=(name,), why=f"the default for {name} is {default}")]
    if policy.risk.get(name, spec.risk) == Risk.HIGH:
        matching.insert(0, HIGH_RISK)
    if name in policy.off or "*" in policy.off:
        matching = [Rule(id="kill-switch", effect="deny", tools=(name,), why=f"{name} is switched off")]
    first = max(matching, key=lambda rule: STRICTNESS[rule.effect])
    trace = tuple(f"{rule.id}: {rule.effect}" for rule in matching)
    verdict = Verdict(first.effect, first.id, first.why or f"rule {first.id}", policy.number, trace=trace)
    if first.effect != "ask":
        return verdict
    if unattended:
        return replace(verdict, verdict="deny", why="nobody watches this run, so what asks is denied")
    asking = [rule for rule in matching if rule.effect == "ask"]
    exclude = (starter,) if any(rule.exclude_starter for rule in asking) else ()
    return replace(verdict, exclude=exclude, expires=min((r.expires for r in asking if r.expires), default=0))


def starter_default(spec: ToolSpec) -> str:
    """The starter policy: reads and repeat-safe writes run; what leaves or cannot be taken back asks."""
    return "allow" if spec.effect in (Effect.READ, Effect.REPEATABLE) and spec.risk != Risk.HIGH else "ask"


def _decimal(value: Any) -> Decimal:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError("not an exact number")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("not a number")
    return number


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: bool(type(value) is type(wanted) and value == wanted),
    "in": lambda value, wanted: any(type(value) is type(w) and value == w for w in wanted),
    "decimal_le": lambda value, bound: _decimal(value) <= _decimal(bound),
    "decimal_gt": lambda value, bound: _decimal(value) > _decimal(bound),
}
