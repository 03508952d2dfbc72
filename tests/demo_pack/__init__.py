"""A second package for AGENTOPS_TOOLS: agents that behave as badly as stories need.

Its tools are those of `demo`, one of them once more with a deadline that a story can wait for, and two of a workshop.
"""

from dataclasses import replace

from demo.tools import TOOLS as DEMO
from tests.demo_pack.agents import AGENTS
from tests.demo_pack.scripts import SCRIPTS
from tests.demo_pack.tools import TOOLS as WORKSHOP

_pickup = next(tool for tool in DEMO if tool.name == "book_pickup")
TOOLS = (replace(_pickup, spec=replace(_pickup.spec, name="book_pickup_soon", deadline=1.0)), *WORKSHOP)

DEMO = True
__all__ = ["AGENTS", "DEMO", "SCRIPTS", "TOOLS"]
