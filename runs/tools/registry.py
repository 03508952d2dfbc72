"""A plain table of what outside packages bring: tools, agents and scripts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from runs.tools.base import Tool
from runs.tools.host import HOST_TOOLS

Script = Callable[[list[dict[str, Any]]], Any]


class BadPackage(ValueError):
    """A package named in AGENTOPS_TOOLS cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Catalog:
    """Everything that can be proposed here. `agents` are plain dicts, as their packages wrote them.

    `demo` has the slugs of agents whose package says of itself that it is for show (`DEMO = True`).
    """

    tools: dict[str, Tool] = field(default_factory=dict)
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    demo: set[str] = field(default_factory=set)


def load(packages: Iterable[str]) -> Catalog:
    """Import the packages and lay their tables together. Raises `BadPackage`."""
    catalog = Catalog()
    for name in packages:
        try:
            package = import_module(name)
        except ImportError as error:
            raise BadPackage(f"AGENTOPS_TOOLS names {name!r}, which cannot be imported: {error}") from error
        _lay(catalog.tools, {tool.name: tool for tool in getattr(package, "TOOLS", ())}, name)
        _lay(catalog.agents, {agent["slug"]: agent for agent in getattr(package, "AGENTS", ())}, name)
        _lay(catalog.scripts, getattr(package, "SCRIPTS", {}), name)
        if getattr(package, "DEMO", False):
            catalog.demo.update(agent["slug"] for agent in getattr(package, "AGENTS", ()))
    if taken := HOST_TOOLS.keys() & catalog.tools.keys():
        raise BadPackage(f"the names {sorted(taken)} belong to the host; rename those tools")
    return catalog


def _lay(table: dict[str, Any], more: dict[str, Any], package: str) -> None:
    if taken := table.keys() & more.keys():
        raise BadPackage(f"{package!r} brings {sorted(taken)} a second time; names must be unique")
    table.update(more)
