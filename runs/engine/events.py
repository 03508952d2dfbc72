"""One frozen dataclass per kind of event: a fact about a run, past tense, append-only.

An `Entry` is a fact with its place (turn, ordinal, revision), its author and its time; the journal gives it a sequence
number and a hash. Bodies are small and enough for `evolve`; what is large or may have to be erased (responses,
arguments, results) is the payload, of which the chain keeps the digest. A changed body raises `VERSION` of its class.
"""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

Body = dict[str, Any]


class UnknownEvent(ValueError):
    """This code cannot read an event of this kind or version; newer code wrote it."""


@dataclass(frozen=True)
class Fact:
    """Base of all facts; `kind` is the class name."""

    VERSION: ClassVar[int] = 1

    @property
    def kind(self) -> str:
        """Name of the kind, as stored."""
        return type(self).__name__


@dataclass(frozen=True, kw_only=True)
class Entry:
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


@dataclass(frozen=True)
class RunStarted(Fact):
    agent: str
    goal: str
    limits: Body
    checks: list[Body]
    starter: int
    unattended: bool
    policy: int


@dataclass(frozen=True)
class SegmentStarted(Fact):
    segment: int
    reason: str
    bytes: int
    tools: str


@dataclass(frozen=True)
class ModelAsked(Fact):
    attempt: int
    bytes: int
    deadline: int


@dataclass(frozen=True)
class ModelAnswered(Fact):
    stop: str
    tokens: int
    bytes: int
    calls: int
    ms: int


@dataclass(frozen=True)
class ModelFailed(Fact):
    reason: str
    retry_at: int = 0
    ms: int = 0


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ApprovalRequested(Fact):
    n: int
    digest: str
    rule: str
    exclude: list[int]
    expires: int = 0


@dataclass(frozen=True)
class ApprovalClosed(Fact):
    n: int
    how: str
    why: str = ""


@dataclass(frozen=True)
class Decided(Fact):
    n: int
    digest: str
    vote: str
    why: str = ""


@dataclass(frozen=True)
class CallEdited(Fact):
    args: str
    was: str
    why: str = ""


@dataclass(frozen=True)
class CallStarted(Fact):
    key: str
    attempt: int
    deadline: int
    via: str
    standing: str = ""
    request: str = ""
    resend_until: int = 0
    look_up: bool = False


@dataclass(frozen=True)
class CallEnded(Fact):
    outcome: str
    status: str = ""
    effect_ref: str = ""
    source: str = ""
    version: str = ""
    ms: int = 0
    observation: str = ""
    met: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    proof: str = ""
    retry_at: int = 0
    after_cancel: bool = False


@dataclass(frozen=True)
class CallProbed(Fact):
    n: int
    how: str
    phase: str
    verdict: str = ""
    due: int = 0


@dataclass(frozen=True)
class CallSettled(Fact):
    to: str
    proof: str
    presumed: bool = False
    outcome: str = ""
    status: str = ""
    effect_ref: str = ""
    observation: str = ""
    met: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    after_cancel: bool = False
    why: str = ""


@dataclass(frozen=True)
class QuestionAsked(Fact):
    question: str
    schema: Body


@dataclass(frozen=True)
class QuestionAnswered(Fact):
    answer: Any
    observation: str


@dataclass(frozen=True)
class NoteAdded(Fact):
    text: str


@dataclass(frozen=True)
class PauseAsked(Fact):
    pass


@dataclass(frozen=True)
class Resumed(Fact):
    pass


@dataclass(frozen=True)
class CancelAsked(Fact):
    why: str = ""


@dataclass(frozen=True)
class LimitsChanged(Fact):
    limits: Body
    why: str = ""


@dataclass(frozen=True)
class FinishClaimed(Fact):
    evidence: list[str]


@dataclass(frozen=True)
class FinishRefused(Fact):
    missing: list[str]
    counted: bool
    observation: str = ""


@dataclass(frozen=True)
class RunStopped(Fact):
    status: str
    reason: str
    unfinished: list[str] = field(default_factory=list)
    detail: str = ""


@dataclass(frozen=True)
class RunEnded(Fact):
    status: str
    reason: str = ""
    unfinished: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LateEvidence(Fact):
    outcome: str
    key: str
    effect_ref: str = ""
    status: str = ""
    observation: str = ""
    met: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class IncidentOpened(Fact):
    what: str


@dataclass(frozen=True)
class SignedOff(Fact):
    what: str


@dataclass(frozen=True)
class PayloadErased(Fact):
    erased: int


KINDS: dict[str, type[Fact]] = {cls.__name__: cls for cls in Fact.__subclasses__()}
AFTER_END = (LateEvidence, IncidentOpened, SignedOff, PayloadErased, NoteAdded)


def dump(fact: Fact) -> Body:
    """Body of a fact as JSON values, defaults left out, ``v`` only from version 2 on."""
    body = {f.name: value for f in fields(fact) if (value := getattr(fact, f.name)) != _default(f)}
    return body if fact.VERSION == 1 else {"v": fact.VERSION, **body}


def load(kind: str, body: Body) -> Fact:
    """The fact of a stored body. Raises `UnknownEvent` for a kind, version or field that this code does not know."""
    cls = KINDS.get(kind)
    if cls is None or body.get("v", 1) != cls.VERSION:
        raise UnknownEvent(f"{kind} version {body.get('v', 1)} is not known to this code; run the version that wrote it")
    try:
        return cls(**{name: value for name, value in body.items() if name != "v"})
    except TypeError as error:
        raise UnknownEvent(f"{kind}: {error}") from error


def _default(f: Any) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if f.default_factory is not MISSING else MISSING
