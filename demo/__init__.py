"""Proof that the door for outsiders works: tools, agents and scripted models against an order service of our own.

Named in AGENTOPS_TOOLS. Of AgentOps it imports `runs.engine.toolspec` and `runs.tools.base`, nothing else.
"""

from demo.agents import AGENTS
from demo.scripts import SCRIPTS
from demo.tools import TOOLS

DEMO = True  # pages say so: nothing here is real
__all__ = ["AGENTS", "DEMO", "SCRIPTS", "TOOLS"]
