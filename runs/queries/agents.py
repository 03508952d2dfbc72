"""Agents: what a version may do, in words, and how its runs came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Prefetch

from runs.catalog import spec
from runs.engine.costs import Cost
from runs.engine.limits import SECOND, Limits
from runs.engine.machines import RUN_ENDS, RUN_STOPS
from runs.journal.lease import now
from runs.models import Agent, AgentVersion, Policy, Run
from runs.queries import costs, words
from runs.queries.policies import SWITCH, VERDICT, risk_of

DAYS, RECENT = 30, 10


@dataclass(frozen=True)
class Outcomes:
    """How runs stand, by number; `ended` are those that came to an end, whichever."""

    total: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    stopped: int = 0

    @property
    def ended(self) -> int:
        """Succeeded, failed and cancelled."""
        return self.succeeded + self.failed + self.cancelled

    @property
    def going(self) -> int:
        """Neither ended nor stopped."""
        return self.total - self.ended - self.stopped

    @property
    def rate(self) -> int | None:
        """Of a hundred that ended, how many succeeded; None where none has ended."""
        return round(100 * self.succeeded / self.ended) if self.ended else None

    @classmethod
    def of(cls, by_status: Mapping[str, int]) -> "Outcomes":
        """Add up counts by status."""
        stopped = sum(by_status.get(status, 0) for status in RUN_STOPS)
        ends = {status: by_status.get(status, 0) for status in RUN_ENDS}
        return cls(total=sum(by_status.values()), stopped=stopped, **ends)


@dataclass
class AgentRow:
    """An agent in the list; `tools` with the sign of what the policy says about each."""

    agent: Agent
    version: AgentVersion
    versions: int
    risks: list[str]
    outcomes: Outcomes
    cost: Cost | None = None

    @property
    def risk_word(self) -> Any:
        """The highest risk of its tools, in words."""
        return words.RISK[self.risks[0]] if self.risks else ""


def agent_list() -> list[AgentRow]:
    """Every agent with its current version: a constant number of queries."""
    content = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    newest = Prefetch("versions", AgentVersion.objects.order_by("-number"))
    found = [agent for agent in Agent.objects.prefetch_related(newest) if agent.versions.all()]
    counts: dict[int, dict[str, int]] = {}
    spent = costs.of_agents(_since())
    recent = Run.objects.filter(started_at__gte=_since()).order_by()
    for agent_id, status, n in recent.values_list("agent_version__agent", "status").annotate(n=Count("pk")):
        counts.setdefault(agent_id, {})[status] = n
    return [
        AgentRow(
            agent, version := agent.versions.all()[0], len(agent.versions.all()), _risks(content, version),
            Outcomes.of(counts.get(agent.pk, {})), spent.get(agent.pk),
        )
        for agent in found
    ]  # fmt: skip


def having(tool: str) -> list[Agent]:
    """The agents whose current version has a tool: two queries."""
    newest = Prefetch("versions", AgentVersion.objects.order_by("-number"))
    found = [agent for agent in Agent.objects.prefetch_related(newest) if agent.versions.all()]
    return [agent for agent in found if tool in agent.versions.all()[0].definition.get("tools", [])]


def _since() -> int:
    return now() - DAYS * 86_400 * SECOND


def _risks(content: Mapping[str, Any], version: AgentVersion) -> list[str]:
    found = {risk_of(content, tool) for tool in version.definition.get("tools", [])}
    return [level for level in ("high", "medium", "low") if level in found]


@dataclass(frozen=True)
class ToolUse:
    """A tool of an agent and what the policy in force says about it; `known` is false where nobody brings it."""

    name: str
    known: bool
    headline: str
    risk: str
    sign: words.Sign

    @property
    def risk_word(self) -> Any:
        """The risk in words."""
        return words.RISK[self.risk]


@dataclass
class AgentSheet:
    """One version of an agent in words. `limits` are (name, value, whether it is the default)."""

    agent: Agent
    version: AgentVersion
    current: bool
    versions: list[tuple[AgentVersion, int]]
    tools: list[ToolUse]
    limits: list[tuple[str, int, bool]]
    outcomes: Outcomes
    runs: list[tuple[Run, words.Sign]]


def agent_sheet(slug: str, number: int | None = None) -> AgentSheet | None:
    """The agent with this version, else the newest; None if there is none."""
    agent = Agent.objects.filter(slug=slug).first()
    rows: Any = agent.versions.annotate(n=Count("runs")).order_by("-number") if agent else []
    versions = [(row, row.n) for row in rows]
    version = next((row for row, _n in versions if number in (None, row.number)), None)
    if agent is None or version is None:
        return None
    content = Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
    runs = Run.objects.filter(agent_version__agent=agent).select_related("starter", "agent_version")
    by_status = dict(runs.filter(started_at__gte=_since()).order_by().values_list("status").annotate(n=Count("pk")))
    return AgentSheet(
        agent, version, version == versions[0][0], versions,
        [tool_use(content, str(tool)) for tool in version.definition.get("tools", [])],
        _limits(version.definition.get("limits", {})), Outcomes.of(by_status),
        [(run, words.RUN[run.status]) for run in runs.order_by("-pk")[:RECENT]],
    )  # fmt: skip


def tool_use(content: Mapping[str, Any], name: str) -> ToolUse:
    """What a policy's content says about a tool."""
    known = spec(name)
    off = name in content.get("off", []) or "*" in content.get("off", [])
    sign = SWITCH[True] if off else VERDICT[content.get("defaults", {}).get(name, "ask")]
    return ToolUse(name, known is not None, known.description if known else "", risk_of(content, name), sign)


def _limits(given: Mapping[str, Any]) -> list[tuple[str, int, bool]]:
    known = Limits.load(dict(given))
    values = (("turns", known.turns), ("calls", known.calls), ("minutes", known.ms // 60_000))
    return [(name, value, ("ms" if name == "minutes" else name) not in given) for name, value in values]
