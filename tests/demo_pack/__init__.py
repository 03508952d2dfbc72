"""A second package for AGENTOPS_TOOLS: agents that behave as badly as stories need. Its tools are those of `demo`."""

from tests.demo_pack.agents import AGENTS
from tests.demo_pack.scripts import SCRIPTS

TOOLS = ()

__all__ = ["AGENTS", "SCRIPTS", "TOOLS"]
