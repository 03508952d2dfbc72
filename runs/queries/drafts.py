"""An edit that somebody is making: what it would change, in words and beside what was proposed."""

import json
from dataclasses import dataclass

from runs.models import Call
from runs.queries import words
from runs.queries.cards import Line, compared


@dataclass
class Draft:
    """A proposed edit; `lines` are what differs, `headline` is what would then happen."""

    headline: str
    lines: list[Line]


def draft_of(call: Call, edited: str) -> Draft | None:
    """The draft of arguments as JSON text; None where they are no object."""
    try:
        values = json.loads(edited)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    return Draft(words.headline(call.tool, values), compared(call.values(), values))
