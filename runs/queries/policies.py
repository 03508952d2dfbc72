"""Policies in words: rules as people read them, what one version changed against another, and the history."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.catalog import catalog
from runs.engine.policy import STRICTNESS, BadPolicy
from runs.engine.policy import Policy as Parsed
from runs.models import Policy
from runs.queries.display import visible
from runs.queries.words import RISK, Sign

PAGE = 20
VERDICT: dict[str, Sign] = {
    "allow": Sign(gettext_lazy("Allow"), "positive", "check"),
    "ask": Sign(gettext_lazy("Ask"), "caution", "waiting"),
    "deny": Sign(gettext_lazy("Deny"), "danger", "denied"),
}
SWITCH: dict[bool, Sign] = {
    False: Sign(gettext_lazy("On"), "positive", "check"),
    True: Sign(gettext_lazy("Switched off"), "danger", "denied"),
}
COMPARE: dict[str, Any] = {
    "eq": gettext_lazy("is"), "in": gettext_lazy("is one of"), "decimal_le": "≤", "decimal_gt": ">",
}  # fmt: skip
DIRECTION: dict[str, Sign] = {
    "stricter": Sign(gettext_lazy("Stricter"), "caution", "up"),
    "looser": Sign(gettext_lazy("Looser"), "danger", "down"),
    "": Sign(gettext_lazy("Changed"), "accent", "pencil"),
}


class Clause(NamedTuple):
    """One condition in words: the argument, how it is compared, with what."""

    arg: str
    compare: Any
    value: str


@dataclass(frozen=True)
class RuleWords:
    """A rule as people read it. `tools` is empty for all; `minutes` until what it asks expires, 0 for never."""

    id: str
    sign: Sign
    tools: list[str]
    clauses: list[Clause]
    why: str
    excludes: bool
    minutes: int

    @property
    def decider(self) -> Any:
        """Who has the word where it applies."""
        if self.sign is VERDICT["deny"]:
            return _("no one")
        if self.sign is VERDICT["allow"]:
            return _("the host")
        return _("an operator who did not start the run") if self.excludes else _("an operator")


def rule_words(rule: Mapping[str, Any]) -> RuleWords:
    """A stored rule in words."""
    tools = [str(tool) for tool in rule.get("tools", [])]
    clauses = [Clause(visible(str(c["arg"])), COMPARE[c["op"]], value_words(c["value"])) for c in rule.get("when", [])]
    return RuleWords(
        visible(str(rule["id"])), VERDICT[rule["effect"]], [] if "*" in tools else tools, clauses,
        visible(rule.get("why", "")), bool(rule.get("exclude_starter")), round(rule.get("expires", 0) / 60),
    )  # fmt: skip


def value_words(value: Any) -> str:
    """What a condition compares with: a list is read one by one."""
    if isinstance(value, list):
        return ", ".join(value_words(item) for item in value)
    return {True: _("true"), False: _("false")}[value] if isinstance(value, bool) else visible(str(value))


def sentence(rule: Mapping[str, Any] | None) -> str:
    """A rule in one line of text, for comparing; empty for none."""
    if rule is None:
        return ""
    words = rule_words(rule)
    parts = [f"{words.sign.word}: {', '.join(words.tools) or _('every tool')}"]
    if words.clauses:
        clauses = _(" and ").join(f"{c.arg} {c.compare} {c.value}" for c in words.clauses)
        parts.append(_("where {clauses}").format(clauses=clauses))
    text = " ".join(parts)
    if words.excludes:
        text += "; " + _("not by the person who started the run")
    if words.minutes:
        text += "; " + ngettext("expires after {n} minute", "expires after {n} minutes", words.minutes).format(
            n=words.minutes
        )
    return text + (f" ({words.why})" if words.why else "")


@dataclass(frozen=True)
class Change:
    """One thing that a version changed: of which tool or rule, what, from what to what, and in which direction."""

    subject: str
    what: str
    was: str
    now: str
    direction: str

    @property
    def sign(self) -> Sign:
        """Stricter, looser, or neither alone."""
        return DIRECTION[self.direction]


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What `new` changes against `old`, looser first: that is where the risk is."""
    found = [*_defaults(old, new), *_risks(old, new), *_switches(old, new), *_rules(old, new)]
    return sorted(found, key=lambda change: ("looser", "stricter", "").index(change.direction))


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any], part: str) -> Iterable[tuple[str, Any, Any]]:
    was, became = old.get(part, {}), new.get(part, {})
    for name in sorted({*was, *became}):
        if was.get(name) != became.get(name):
            yield name, was.get(name), became.get(name)


def _turn(was: int, became: int) -> str:
    return "stricter" if became > was else "looser" if became < was else ""


def _defaults(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[Change]:
    for tool, was, became in _pairs(old, new, "defaults"):
        was, became = was or "ask", became or "ask"
        turn = _turn(STRICTNESS[was], STRICTNESS[became])
        yield Change(tool, _("verdict where no rule matches"), str(VERDICT[was].word), str(VERDICT[became].word), turn)


def risk_of(content: Mapping[str, Any], tool: str) -> str:
    """The risk of a tool under this policy: its word, else the tool's own, else high, as nobody can tell."""
    own = catalog().tools.get(tool)
    return str(content.get("risk", {}).get(tool) or (own.spec.risk.value if own else "high"))


def _risks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[Change]:
    for tool, _was, _became in _pairs(old, new, "risk"):
        was, became = risk_of(old, tool), risk_of(new, tool)
        turn = _turn(was == "high", became == "high")  # only high risk changes a verdict: it asks another person
        yield Change(tool, _("risk"), str(RISK[was]), str(RISK[became]), turn)


def _switches(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[Change]:
    was, became = set(old.get("off", [])), set(new.get("off", []))
    for name in sorted(was ^ became):
        off = name in became
        subject = _("every tool") if name == "*" else name
        yield Change(
            subject, _("kill switch"), str(SWITCH[not off].word), str(SWITCH[off].word), _turn(name in was, off)
        )


def _rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[Change]:
    was, became = by_id(old), by_id(new)
    for name in sorted({*was, *became}):
        before, after = was.get(name), became.get(name)
        if before != after:
            kind = _("rule changed") if before and after else _("rule added") if after else _("rule removed")
            yield Change(visible(name), kind, sentence(before), sentence(after), _rule_turn(before, after))


def by_id(content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rules by their id, without what says nothing: a rule is the same whether it names a default or not."""
    return {str(r["id"]): {key: value for key, value in r.items() if value} for r in content.get("rules", [])}


def _rule_turn(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Where it can be told from the rule alone: a denying rule only tightens, an allowing one only loosens. An asking
    one does either, as the default counts only where no rule matches; the rehearsal shows it.
    """
    effects = {rule["effect"] for rule in (before, after) if rule}
    if len(effects) != 1 or effects == {"ask"}:
        return ""
    wider = _wider(before, after)
    if wider is None:
        return ""
    return "stricter" if wider == (effects == {"deny"}) else "looser"


def _wider(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool | None:
    """Whether `after` speaks about more calls than `before`; None where that cannot be told."""
    if before is None or after is None:
        return before is None
    bounds = [
        (_plain(was), _plain(now)) for was, now in zip(before.get("when", []), after.get("when", []), strict=False)
    ]
    moved = [(was, now) for was, now in bounds if was != now]
    same_size = len(before.get("when", [])) == len(after.get("when", []))
    if not same_size or set(before["tools"]) != set(after["tools"]) or len(moved) != 1:
        return None
    (arg, op, was), (arg_now, op_now, now) = moved[0]
    try:
        grew = Decimal(str(now)) > Decimal(str(was))
    except InvalidOperation:
        return None
    if (arg, op) != (arg_now, op_now) or op not in ("decimal_le", "decimal_gt"):
        return None
    return grew == (op == "decimal_le")


def _plain(condition: Mapping[str, Any]) -> tuple[str, str, Any]:
    return condition["arg"], condition["op"], condition["value"]


@dataclass
class Version:
    """One version in the history. `changes` is against the one before; `broken` says why it cannot be read."""

    row: Policy
    changes: list[Change]
    broken: str = ""

    @property
    def turn(self) -> str:
        """looser, stricter or neither: looser if anything is."""
        directions = [change.direction for change in self.changes]
        return next((d for d in ("looser", "stricter") if d in directions), "")


@dataclass
class History:
    """A page of versions, newest first; `older` is the number to go on from."""

    versions: list[Version]
    older: int | None


def history(before: int | None = None) -> History:
    """Keyset pages of `PAGE`: one query."""
    rows = Policy.objects.select_related("author").order_by("-number")
    found = list((rows.filter(number__lt=before) if before is not None else rows)[: PAGE + 1])
    empty: dict[str, Any] = {}
    older = [*found[1:], None]
    versions = [
        Version(row, changes(last.content if last else empty, row.content) if last else [])
        for row, last in zip(found[:PAGE], older, strict=False)
    ]
    return History(versions, found[PAGE - 1].number if len(found) > PAGE else None)


def current() -> Policy:
    """The policy in force, with its author."""
    return Policy.objects.select_related("author").get(current=True)


def version(number: int) -> Policy | None:
    """A version by its number."""
    return Policy.objects.select_related("author").filter(pk=number).first()


def readable(row: Policy, content: Mapping[str, Any] | None = None) -> Parsed:
    """A version, or a draft of it, as the gate reads it. Raises `BadPolicy`."""
    return Parsed.load(row.number, row.content if content is None else content)


__all__ = [
    "DIRECTION", "SWITCH", "VERDICT", "BadPolicy", "Change", "Clause", "History", "RuleWords", "Version", "by_id",
    "changes", "current", "history", "readable", "risk_of", "rule_words", "sentence", "version",
]  # fmt: skip
