"""The catalog of this installation: what AGENTOPS_TOOLS names, loaded once."""

from functools import cache

from django.conf import settings

from runs.engine.toolspec import ToolSpec
from runs.tools.host import HOST_TOOLS
from runs.tools.registry import Catalog, load


@cache
def catalog() -> Catalog:
    """Tools, agents and scripts of the packages named in the settings."""
    return load(settings.AGENTOPS_TOOLS)


def spec(name: str) -> ToolSpec | None:
    """The spec of a tool by name, host tools included; None if nobody brings it."""
    tool = catalog().tools.get(name)
    return tool.spec if tool else HOST_TOOLS.get(name)
