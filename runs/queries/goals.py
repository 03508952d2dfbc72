"""What a goal is made of: what is wanted, by what one sees that it was reached, and what it is not about.

A run records one text (DESIGN.md 2: the goal carries its success criteria and non-goals); the model reads the same
text. The two headings are part of the record, so they are English whatever the language of the page.
"""

from dataclasses import dataclass

CRITERIA, NON_GOALS = "Success criteria:", "Non-goals:"


@dataclass(frozen=True)
class Goal:
    """The parts of a goal; the lists may be empty."""

    goal: str
    criteria: tuple[str, ...] = ()
    non_goals: tuple[str, ...] = ()


def composed(goal: str, criteria: str, non_goals: str) -> str:
    """One text of what was typed in three fields, one criterion or non-goal a line."""
    blocks = [goal.strip()]
    for head, typed in ((CRITERIA, criteria), (NON_GOALS, non_goals)):
        if lines := [line.strip().removeprefix("- ") for line in typed.splitlines() if line.strip()]:
            blocks.append("\n".join([head, *(f"- {line}" for line in lines)]))
    return "\n\n".join(blocks)


def parts(text: str) -> Goal:
    """The inverse, for pages. A text that was composed otherwise is all goal."""
    blocks = text.split("\n\n")
    non_goals = _listed(blocks, NON_GOALS)
    criteria = _listed(blocks, CRITERIA)
    return Goal("\n\n".join(blocks), criteria, non_goals)


def _listed(blocks: list[str], head: str) -> tuple[str, ...]:
    lines = blocks[-1].split("\n")
    if len(blocks) < 2 or lines[0] != head or not all(line.startswith("- ") for line in lines[1:]):
        return ()
    blocks.pop()
    return tuple(line[2:] for line in lines[1:])
