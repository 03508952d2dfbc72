"""What an installation without a single run says to who looks at it, and what here is only for show."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from runs.catalog import catalog
from runs.models import Agent, Run
from runs.queries.viewer import Viewer

NAMED = 3


@dataclass(frozen=True)
class Greeting:
    """The first steps. `agents` are names, `operators` who could start a run; at most `NAMED` of each are listed."""

    agents: list[str]
    more: int
    operators: list[str]


def greeting(viewer: Viewer) -> Greeting | None:
    """None as soon as there is a run: one query then, three before."""
    if Run.objects.exists():
        return None
    agents = list(Agent.objects.values_list("name", flat=True))
    operators = User.objects.filter(is_active=True, groups__name="operator").order_by("username")
    named = [] if viewer.starts else list(operators.values_list("username", flat=True)[:NAMED])
    return Greeting(agents[:NAMED], max(0, len(agents) - NAMED), named)


def is_demo(slug: str) -> bool:
    """Whether an agent is for show beside others that are not; where all are, the frame of the page says so once."""
    return slug in catalog().demo and catalog().demo != catalog().agents.keys()


def any_demo() -> bool:
    """Whether an agent of a package for show is installed here."""
    return bool(catalog().demo)
