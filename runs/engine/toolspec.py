"""What the host knows about a tool: everything but how it runs.

A `ToolSpec` is derived from a typed function. Arguments are checked by a pydantic model that forbids extra
properties and coerces nothing, so the bytes that a person was shown are the bytes that run.
"""

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from string import Formatter
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from runs.engine.canonical import canonical, digest, strict_loads

NAME = re.compile(r"^[a-z][a-z0-9_]{0,63}$")


class Effect(StrEnum):
    """What a tool does to the world, and so what may be promised after a crash in mid-call (DESIGN.md 6)."""

    READ = "read"
    REPEATABLE = "repeatable"
    KEYED = "keyed"
    LOOKUP = "lookup"
    OPAQUE = "opaque"

    @property
    def again(self) -> bool:
        """True where running the same call once more cannot add an effect."""
        return self in (Effect.READ, Effect.REPEATABLE)


class Risk(StrEnum):
    """How much a mistake with this tool costs; an admin may raise or lower it in the policy."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class InvalidArguments(ValueError):
    """The arguments do not fit the tool's schema; the message names each field and what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """One tool as people, policy and model see it.

    `objects` are templates such as ``order:{order_id}``; `headline` is the sentence shown to the person who decides,
    made by code from the arguments. `retention` is H of a keyed tool in seconds, `deadline` the longest a call may
    take in seconds. `version` is raised by hand when the tool's behaviour changes under the same schema.

    `card` says how the call is shown before a decision: ``kind`` (money, message, diff, command), ``consequence`` (one
    sentence), and the parts of that kind, each the name of an argument or ``fact:`` and the name of a fact.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    headline: str = ""
    effect: Effect = Effect.OPAQUE
    risk: Risk = Risk.MEDIUM
    version: int = 1
    retention: int = 0
    deadline: float = 30.0
    sensitive: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    card: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse a spec that could not be enforced, at import and not in the middle of a run."""
        fields = set(self.arguments.model_fields)
        object.__setattr__(self, "effect", Effect(self.effect))
        object.__setattr__(self, "risk", Risk(self.risk))
        if not NAME.fullmatch(self.name):
            raise ValueError(f"tool name {self.name!r} must match {NAME.pattern}")
        if self.effect is Effect.KEYED and self.retention <= 0:
            raise ValueError(f"{self.name}: a keyed tool states for how many seconds the remote keeps keys (retention)")
        texts = (*self.objects, self.headline)
        named = {name for text in texts for _, name, _, _ in Formatter().parse(text) if name is not None}
        parts = {value for part, value in self.card.items() if part not in ("kind", "consequence")}
        named |= {value for value in parts if not value.startswith("fact:")}
        if unknown := {*self.sensitive, *named} - fields:
            raise ValueError(
                f"{self.name}: sensitive, objects, card or headline name unknown arguments {sorted(unknown)}"
            )

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, `additionalProperties: false`."""
        return self.arguments.model_json_schema()

    @cached_property
    def definition(self) -> str:
        """``name@digest`` over schema, effect class, sensitive arguments, object keys and the version set by hand."""
        parts = [self.schema, self.effect, sorted(self.sensitive), sorted(self.objects), self.version]
        return f"{self.name}@{digest(canonical(parts))[:16]}"

    def check(self, text: str) -> str:
        """Canonical JSON of the arguments in `text`, defaults filled in.

        Raises `InvalidArguments` naming each field that does not fit.
        """
        try:
            strict_loads(text)
            return canonical(self.arguments.model_validate_json(text, strict=True).model_dump(mode="json"))
        except ValidationError as error:
            raise InvalidArguments("; ".join(_problem(e) for e in error.errors(include_url=False))) from error
        except ValueError as error:
            raise InvalidArguments(str(error)) from error

    def object_keys(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Keys of the business objects that a call touches, such as ``order:O-1042``."""
        return tuple(template.format_map(args) for template in self.objects)

    def headline_for(self, args: Mapping[str, Any]) -> str:
        """What the call will do, in words made by code."""
        return self.headline.format_map(args) if self.headline else f"Run {self.name}"


def spec_of(function: Callable[..., Any], **fields: Any) -> ToolSpec:
    """Derive a `ToolSpec` from ``def name(ctx, *, field: type = default)``; its docstring is the description.

    Types come from the annotations (`Annotated[str, Field(...)]` carries limits and descriptions). Raises `TypeError`
    for a parameter without one: an unchecked argument would be the model's to choose.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if untyped := [p.name for p in parameters if p.name not in hints]:
        raise TypeError(f"{function.__name__}: parameters without a type: {', '.join(untyped)}")
    with warnings.catch_warnings():
        # An argument may be called `schema` or `copy`: nobody uses the old methods of those names on arguments.
        warnings.filterwarnings("ignore", message="Field name .* shadows", category=UserWarning)
        arguments: dict[str, Any] = {
            p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters
        }
        config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
        model = create_model(function.__name__, __config__=config, **arguments)
    description = inspect.cleandoc(function.__doc__ or "")
    return ToolSpec(name=function.__name__, description=description, arguments=model, **fields)


def _problem(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "arguments"
    return f"{where}: {error['msg']}"
