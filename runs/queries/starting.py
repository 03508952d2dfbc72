"""What one chooses from to start a run: each agent with what it does, may use and needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from django.conf import settings
from django.db.models import Prefetch
from django.utils.translation import gettext as _

from runs.engine.costs import MILLION
from runs.engine.limits import Limits
from runs.models import Agent, AgentVersion, ModelEntry, Policy
from runs.providers import lacking
from runs.queries.agents import ToolUse, tool_use
from runs.queries.catalogue import latest
from runs.queries.display import visible


@dataclass(frozen=True)
class Choice:
    """An agent with the version that new runs start with. `needs` and `may` are labels of inputs."""

    agent: Agent
    version: AgentVersion
    tools: list[ToolUse]

    @property
    def definition(self) -> Mapping[str, Any]:
        """The version's own words."""
        return dict(self.version.definition)

    @property
    def needs(self) -> list[str]:
        """What one has to bring."""
        return [f.get("label", f["name"]) for f in self.definition.get("inputs", []) if f.get("required", True)]

    @property
    def may(self) -> list[str]:
        """What one may bring besides."""
        inputs = [f.get("label", f["name"]) for f in self.definition.get("inputs", []) if not f.get("required", True)]
        return inputs + [fact.get("label", name) for name, fact in self.definition.get("facts", {}).items()]

    @property
    def lacking(self) -> list[str]:
        """Tools that no installed package brings: a run of it would get nowhere with them."""
        return [tool.name for tool in self.tools if not tool.known]

    @property
    def checks(self) -> list[tuple[str, str]]:
        """What the host itself checks before it calls a run succeeded: (in words, tool)."""
        found = self.definition.get("acceptance", [])
        return [(visible(str(c["id"]).replace("_", " ")), visible(str(c["tool"]))) for c in found]

    @property
    def limits(self) -> Limits:
        """The bounds of a run that names none."""
        return Limits.load(dict(self.definition.get("limits", {})))


@dataclass(frozen=True)
class ModelChoice:
    """A model that a run of an agent may be started on; `lacks` is the knob that must be set first."""

    name: str
    words: str
    lacks: str


def model_choices(definition: Mapping[str, Any]) -> list[ModelChoice]:
    """Models beside the version's own: those that it allows and the catalogue offers. One query."""
    patterns = definition.get("models", [])
    names = [entry for entry in latest() if entry.offered and any(fnmatchcase(entry.name, p) for p in patterns)]
    return [ModelChoice(entry.name, _priced(entry), lacking(entry.name, settings.AGENTOPS_MODELS)) for entry in names]


def _priced(entry: ModelEntry) -> str:
    dear, cheap = entry.prices.get("output"), entry.prices.get("input")
    if dear is None or cheap is None:
        return _("{name}, price unknown").format(name=entry.name)
    told = _("{name}: ${input} in, ${output} out per million tokens")
    return told.format(name=entry.name, input=_dollars(cheap), output=_dollars(dear))


def _dollars(micro: int) -> str:
    return f"{micro / MILLION:.2f}" if micro % 10_000 == 0 else f"{micro / MILLION:g}"


def choices() -> list[Choice]:
    """Every agent that has a version: three queries."""
    newest = Prefetch("versions", AgentVersion.objects.order_by("-number"))
    content = _policy()
    return [_choice(agent, content) for agent in Agent.objects.prefetch_related(newest) if agent.versions.all()]


def choice(slug: str) -> Choice | None:
    """One of them; None if there is none."""
    newest = Prefetch("versions", AgentVersion.objects.order_by("-number"))
    agent = Agent.objects.prefetch_related(newest).filter(slug=slug).first()
    return _choice(agent, _policy()) if agent and agent.versions.all() else None


def _choice(agent: Agent, content: Mapping[str, Any]) -> Choice:
    version = agent.versions.all()[0]
    return Choice(agent, version, [tool_use(content, str(tool)) for tool in version.definition.get("tools", [])])


def _policy() -> Mapping[str, Any]:
    return Policy.objects.filter(current=True).values_list("content", flat=True).first() or {}
