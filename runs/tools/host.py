"""How the model may end or ask: tools that the host itself answers. They have no effect, key or policy."""

from typing import Annotated, Any

from pydantic import Field

from runs.engine.toolspec import ToolSpec, spec_of


def finish(
    ctx: None,
    *,
    answer: Annotated[str, Field(min_length=1, max_length=20_000)],
    evidence: Annotated[list[str], Field(max_length=50)],
) -> None:
    """Claim that the goal is reached, citing evidence ids of this run, which the host checks. Alone in its turn."""


def ask_user(
    ctx: None, *, question: Annotated[str, Field(min_length=1, max_length=4_000)], schema: dict[str, Any]
) -> None:
    """Ask a person for a fact that only they have. `schema`: JSON schema of the answer, an object of plain fields."""


def give_up(ctx: None, *, reason: Annotated[str, Field(min_length=1, max_length=4_000)]) -> None:
    """Say that the goal cannot be reached, and why. Alone in its turn."""


HOST_TOOLS: dict[str, ToolSpec] = {f.__name__: spec_of(f, effect="read") for f in (finish, ask_user, give_up)}
ALONE = ("finish", "give_up")
