"""One frozen dataclass per kind of event: a fact about a run, past tense, append-only.

An `Entry` is a fact with its place (turn, ordinal, revision), its author and its time; the journal gives it a sequence
number and a hash. Bodies are small and enough for `evolve`; what is large or may have to be erased (responses,
arguments, results) is the payload, of which the chain keeps the digest. A changed body raises `VERSION` of its class
and says in `OLDER` how an older one is read; `tests/versions` holds bodies of every version.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

from runs.engine.frozen import Frozen

Body = dict[str, Any]


class UnknownEvent(ValueError):
    """This code cannot read an event of this kind or version; newer code wrote it."""


class Fact(Frozen):
    """Base of all facts: `kind` is the name of the class; `OLDER` makes the body of a version that of the next."""

    VERSION: ClassVar[int] = 1
    OLDER: ClassVar[dict[int, Callable[[Body], Body]]] = {}

    @property
    def kind(self) -> str:
        """Name of the kind, as stored."""
        return type(self).__name__


class Entry(Frozen):
    """A fact, where in the run it belongs, who stated it and when (microseconds since 1970)."""

    fact: Fact
    turn: int = 0
    ordinal: int = 0
    revision: int = 0
    actor: str = "host"
    person: int | None = None
    t: int = 0
    payload: str | None = None
    seq: int = 0
    epoch: int = 0


class Found(Frozen, kw_only=True):
    """What is known of a call that came to an end: told by its end, by what settles it, or too late."""

    status: str = ""
    effect_ref: str = ""
    observation: str = ""
    met: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


class RunStarted(Fact):
    agent: str
    goal: str
    limits: Body
    checks: list[Body]
    starter: int
    unattended: bool
    policy: int


class SegmentStarted(Fact):
    segment: int
    reason: str
    bytes: int
    tools: str


class ModelAsked(Fact):
    attempt: int
    bytes: int
    deadline: int


class ModelAnswered(Fact):
    stop: str
    tokens: int
    bytes: int
    calls: int
    ms: int


class ModelFailed(Fact):
    VERSION: ClassVar[int] = 2
    OLDER: ClassVar[dict[int, Callable[[Body], Body]]] = {1: lambda body: body}  # without what the provider said

    reason: str
    retry_at: int = 0
    ms: int = 0
    detail: str = ""


class CallJudged(Fact):
    label: str
    tool: str
    definition: str = ""
    effect: str = "opaque"
    args: str = ""
    objects: list[str] = field(default_factory=list)
    verdict: str = "invalid"
    rule: str = ""
    policy: int = 0
    why: str = ""
    exclude: list[int] = field(default_factory=list)
    standing: str = ""


class ApprovalRequested(Fact):
    n: int
    digest: str
    rule: str
    exclude: list[int]
    expires: int = 0


class ApprovalClosed(Fact):
    n: int
    how: str
    why: str = ""


class Decided(Fact):
    n: int
    digest: str
    vote: str
    why: str = ""


class CallEdited(Fact):
    args: str
    was: str
    why: str = ""


class CallStarted(Fact):
    key: str
    attempt: int
    deadline: int
    via: str
    standing: str = ""
    request: str = ""
    resend_until: int = 0
    look_up: bool = False


class CallEnded(Fact, Found):
    outcome: str
    source: str = ""
    version: str = ""
    ms: int = 0
    proof: str = ""
    retry_at: int = 0
    after_cancel: bool = False


class CallProbed(Fact):
    n: int
    how: str
    phase: str
    verdict: str = ""
    due: int = 0


class CallSettled(Fact, Found):
    to: str
    proof: str
    presumed: bool = False
    outcome: str = ""
    after_cancel: bool = False
    why: str = ""


class QuestionAsked(Fact):
    question: str
    schema: Body


class QuestionAnswered(Fact):
    answer: Any
    observation: str


class NoteAdded(Fact):
    text: str


class PauseAsked(Fact):
    """Begin nothing new."""


class Resumed(Fact):
    """Go on after a pause or a stop."""


class CancelAsked(Fact):
    why: str = ""


class LimitsChanged(Fact):
    limits: Body
    why: str = ""


class FinishClaimed(Fact):
    evidence: list[str]


class FinishRefused(Fact):
    missing: list[str]
    counted: bool
    observation: str = ""


class RunStopped(Fact):
    status: str
    reason: str
    unfinished: list[str] = field(default_factory=list)
    detail: str = ""


class RunEnded(Fact):
    status: str
    reason: str = ""
    unfinished: list[str] = field(default_factory=list)


class LateEvidence(Fact, Found):
    outcome: str
    key: str


class IncidentOpened(Fact):
    what: str


class IncidentClosed(Fact):
    incident: int
    why: str


class SignedOff(Fact):
    what: str


class PayloadErased(Fact):
    erased: int


KINDS: dict[str, type[Fact]] = {cls.__name__: cls for cls in Fact.__subclasses__()}
AFTER_END = (LateEvidence, IncidentOpened, IncidentClosed, SignedOff, PayloadErased, NoteAdded)


def dump(fact: Fact) -> Body:
    """Body of a fact as JSON values, defaults left out, ``v`` only from version 2 on."""
    return fact.own() if fact.VERSION == 1 else {"v": fact.VERSION, **fact.own()}


def load(kind: str, body: Body) -> Fact:
    """The fact of a stored body. Raises `UnknownEvent` for a kind, version or field that this code does not know."""
    cls, version = KINDS.get(kind), body.get("v", 1)
    body = {name: value for name, value in body.items() if name != "v"}
    while cls and version in cls.OLDER:
        body, version = cls.OLDER[version](body), version + 1
    if cls is None or version != cls.VERSION:
        raise UnknownEvent(f"{kind} version {version} is not known to this code; run the version that wrote it")
    try:
        return cls(**body)
    except TypeError as error:
        raise UnknownEvent(f"{kind}: {error}") from error
