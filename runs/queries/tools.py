"""Tools as admins see them: what each does to the world, what the policy says about it, and how it was used."""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Count

from runs.catalog import catalog
from runs.engine.limits import SECOND
from runs.engine.toolspec import ToolSpec
from runs.journal.lease import now
from runs.models import Agent, Call, Policy
from runs.queries import words
from runs.queries.agents import having
from runs.queries.policies import SWITCH, VERDICT, RuleWords, Version, by_id, changes, risk_of, rule_words

DAYS = 30
# An approval names its call by three numbers, which is no relation that the ORM could join by.
DECIDED = """
WITH made AS (
    SELECT c.tool, d.vote, d.at - a.created_at AS us, COUNT(*) OVER (PARTITION BY c.tool) AS n,
        ROW_NUMBER() OVER (PARTITION BY c.tool ORDER BY d.at - a.created_at) AS place
    FROM runs_decision d JOIN runs_approval a ON a.id = d.approval_id
    JOIN runs_call c ON c.run_id = a.run_id AND c.turn = a.turn AND c.ordinal = a.ordinal
    WHERE d.at >= %s AND (%s = '' OR c.tool = %s)
)
SELECT tool, MAX(n), SUM(CASE WHEN vote = 'approve' THEN 1 ELSE 0 END), MAX(CASE WHEN place = (n + 1) / 2 THEN us END)
FROM made GROUP BY tool
"""
HISTORY = 400  # policy versions that are looked through for the last change of a tool


@dataclass
class Use:
    """What happened to a tool's calls in the last `DAYS` days; `ms` is the median time to decide, None for none."""

    calls: int = 0
    approved: int = 0
    decided: int = 0
    ms: int | None = None

    @property
    def rate(self) -> int | None:
        """Of a hundred decisions, how many were yes; None without decisions."""
        return round(100 * self.approved / self.decided) if self.decided else None


@dataclass
class ToolRow:
    """A tool in the list. `stands` is the sign of what happens where no rule matches, kill switch included."""

    spec: ToolSpec
    verdict: str
    risk: str
    off: bool
    rules: list[RuleWords]
    use: Use
    changed: Policy | None

    @property
    def sign(self) -> words.Sign:
        """What happens where no rule matches."""
        return VERDICT[self.verdict]

    @property
    def switch(self) -> words.Sign:
        """On, or switched off."""
        return SWITCH[self.off]

    @property
    def effect(self) -> tuple[Any, Any]:
        """The effect class: its word, and what it means after a crash."""
        return words.EFFECT[self.spec.effect.value]

    @property
    def risk_word(self) -> Any:
        """The risk in words."""
        return words.RISK[self.risk]


@dataclass
class ToolList:
    """All tools. `strange` are names in the policy that no installed package brings."""

    policy: Policy
    rows: list[ToolRow]
    all_off: bool
    strange: list[str] = field(default_factory=list)


def tool_list() -> ToolList:
    """Every installed tool, those that are switched off first: a constant number of queries."""
    policy = _current()
    content, used, changed = policy.content, uses(), last_changes()
    rows = [_row(tool.spec, content, used, changed) for tool in catalog().tools.values()]
    rows.sort(key=lambda row: (not row.off, ("high", "medium", "low").index(row.risk), row.spec.name))
    named = {*content.get("defaults", {}), *content.get("risk", {}), *content.get("off", [])} - {"*"}
    return ToolList(policy, rows, "*" in content.get("off", []), sorted(named - set(catalog().tools)))


def _current() -> Policy:
    return Policy.objects.select_related("author").get(current=True)


def _row(spec: ToolSpec, content: Mapping[str, Any], used: Mapping[str, Use], changed: Mapping[str, Policy]) -> ToolRow:
    rules = [rule_words(rule) for rule in content.get("rules", []) if speaks_of(rule, spec.name)]
    return ToolRow(
        spec, content.get("defaults", {}).get(spec.name, "ask"), risk_of(content, spec.name),
        spec.name in content.get("off", []), rules, used.get(spec.name, Use()), changed.get(spec.name),
    )  # fmt: skip


def speaks_of(rule: Mapping[str, Any], tool: str) -> bool:
    """Whether a rule is about a tool, by name or as about all."""
    return tool in rule.get("tools", []) or "*" in rule.get("tools", [])


def uses(tool: str = "") -> dict[str, Use]:
    """By tool, or of one: calls of runs that were started in the last `DAYS` days, and decisions made in them."""
    since = now() - DAYS * 86_400 * SECOND
    found: dict[str, Use] = defaultdict(Use)
    recent = Call.objects.filter(run__started_at__gte=since).exclude(effect="host").order_by()
    recent = recent.filter(tool=tool) if tool else recent
    for name, n in recent.values_list("tool").annotate(n=Count("turn")):
        found[name].calls = n
    with connection.cursor() as cursor:
        cursor.execute(DECIDED, [since, tool, tool])
        for name, decided, approved, us in cursor.fetchall():
            found[name].decided, found[name].approved, found[name].ms = decided, int(approved), us // 1000
    return found


def last_changes() -> dict[str, Policy]:
    """By tool, the newest version that changed what the policy says about it, of the last `HISTORY` versions."""
    rows = list(Policy.objects.select_related("author").order_by("-number")[: HISTORY + 1])
    found: dict[str, Policy] = {}
    for row, older in itertools.pairwise(rows):
        for tool in touched(older.content, row.content):
            found.setdefault(tool, row)
    if rows and len(rows) <= HISTORY:
        for tool in rows[-1].content.get("defaults", {}):
            found.setdefault(tool, rows[-1])
    return found


def touched(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Tools about which two contents differ; a rule about all counts for none by name."""
    found = set(old.get("off", [])) ^ set(new.get("off", []))
    for part in ("defaults", "risk"):
        was, became = old.get(part, {}), new.get(part, {})
        found |= {name for name in {*was, *became} if was.get(name) != became.get(name)}
    before, after = by_id(old), by_id(new)
    moved = [rules.get(name, {}) for name in {*before, *after} for rules in (before, after)
             if before.get(name) != after.get(name)]  # fmt: skip
    return found.union(*(rule.get("tools", ()) for rule in moved)) - {"*"}


@dataclass
class ToolSheet:
    """One tool in full. `shared` are rules about it that are about other tools too."""

    policy: Policy
    row: ToolRow
    all_off: bool
    arguments: list[tuple[str, str, str, bool]]
    agents: list[Agent]
    shared: list[RuleWords]
    versions: list[Version]


def tool_sheet(name: str) -> ToolSheet | None:
    """The tool of this name with its use, its agents and the versions that changed it; None if nobody brings it."""
    tool = catalog().tools.get(name)
    if tool is None:
        return None
    policy = _current()
    row = _row(tool.spec, policy.content, uses(name), {})
    shared = [rule_words(r) for r in policy.content.get("rules", []) if speaks_of(r, name) and not is_own(r, name)]
    return ToolSheet(
        policy, row, "*" in policy.content.get("off", []), _arguments(tool.spec), having(name), shared, _versions(name)
    )


def is_own(rule: Mapping[str, Any], tool: str) -> bool:
    """Whether a rule is about this tool alone."""
    return list(rule.get("tools", [])) == [tool]


def _arguments(spec: ToolSpec) -> list[tuple[str, str, str, bool]]:
    """(name, what it is, its meaning, whether the tool calls it sensitive)."""
    needed = set(spec.schema.get("required", []))
    found = []
    for name, about in spec.schema.get("properties", {}).items():
        kind = (
            " | ".join(map(str, about["enum"])) if "enum" in about else str(about.get("const", about.get("type", "")))
        )
        meaning = str(about.get("description", ""))
        found.append((name, kind if name in needed else f"{kind}?", meaning, name in spec.sensitive))
    return found


def _versions(tool: str) -> list[Version]:
    rows = list(Policy.objects.select_related("author").order_by("-number")[: HISTORY + 1])
    found = []
    for row, older in itertools.pairwise(rows):
        if tool in touched(older.content, row.content) or "*" in _switched(older.content, row.content):
            found.append(Version(row, [c for c in changes(older.content, row.content) if _about(c.subject, tool, row)]))
    return found[:10]


def _switched(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    return set(old.get("off", [])) ^ set(new.get("off", []))


def _about(subject: str, tool: str, row: Policy) -> bool:
    rules = {str(rule["id"]) for rule in row.content.get("rules", []) if speaks_of(rule, tool)}
    return subject == tool or subject in rules or subject not in catalog().tools
