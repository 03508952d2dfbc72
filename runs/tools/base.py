"""The door for tools: what a tool is given and what it gives back.

A package named in AGENTOPS_TOOLS exports `TOOLS` (a tuple of `Tool`), `AGENTS` (a tuple of plain dicts) and `SCRIPTS`
(name -> function over the rendered messages). It imports this module and `runs.engine.toolspec`, nothing else of ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runs.engine.toolspec import ToolSpec, spec_of


class Kind(StrEnum):
    """What a call came to."""

    OK = "ok"
    RETRYABLE = "retryable"
    DECLINED = "declined"
    FATAL = "fatal"
    UNKNOWN = "unknown"


class Proof(StrEnum):
    """Why "nothing happened" may be said: no byte left, or the remote documented a refusal (reliability.md 2.4)."""

    PRE_SEND = "pre_send"
    REMOTE_REFUSED = "remote_refused"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a call came to, as the tool saw it.

    `data` is JSON for the model. `source` and `version` say where and of which state it was read. `evidence` are ids of
    the object forms that it shows (``order:O-1042:v3``). `effect_ref` is the remote's own number of an effect.
    `proof` is required with RETRYABLE and FATAL of any tool that is not a read: without it the host records `unknown`.
    `retry_after` is in seconds. `changed` are the object keys that the call changed; None means the tool's object keys
    where it is not a read.
    """

    kind: Kind
    data: Any = None
    source: str = ""
    version: str = ""
    evidence: tuple[str, ...] = ()
    effect_ref: str = ""
    status: str = ""
    proof: Proof | None = None
    retry_after: float = 0.0
    changed: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the host lends to one call: identity and facts come from here, never from arguments.

    `key` is the operation key, the same for every attempt. `seconds_left()` counts down to the call's deadline;
    `cancelled()` turns true when a person cancels, for tools that can be aborted without leaving an effect in doubt.
    """

    key: str
    facts: Mapping[str, Any]
    seconds_left: Callable[[], float]
    cancelled: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A spec and the function behind it.

    `look_up` finds an effect by our marker (class lookup): OK when found, DECLINED when there is none, UNKNOWN when
    the look-up itself failed.
    """

    spec: ToolSpec
    run: Callable[..., Outcome]
    look_up: Callable[..., Outcome] | None = None

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.spec.name


def tool(function: Callable[..., Outcome], *, look_up: Callable[..., Outcome] | None = None, **fields: Any) -> Tool:
    """Make a `Tool` of ``def name(ctx: Context, *, order_id: str, ...) -> Outcome``; `fields` as in `ToolSpec`."""
    return Tool(spec=spec_of(function, **fields), run=function, look_up=look_up)
