"""What the host believes about a run: bounded, however long the run. Evidence is in the `Call` rows, reasons in events.

Full names here, short keys only in the stored text: the state is written with every append.
"""

import json
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Self

from runs.engine.canonical import digest
from runs.engine.limits import DEFAULTS, Limits
from runs.engine.machines import CALL, CALL_ENDS, move

VERSION = 1
PROBES = 4


def short(key: str, default: Any = MISSING, factory: Any = MISSING) -> Any:
    """A field with its key in the stored text."""
    return field(default=default, default_factory=factory, metadata={"key": key})  # type: ignore[call-overload]


class Stored:
    """Frozen dataclasses that leave defaults out of their stored form."""

    def dump(self) -> dict[str, Any]:
        """Stored form: short keys, defaults left out."""
        out = {}
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value != (f.default if f.default is not MISSING else f.default_factory()):
                out[f.metadata["key"]] = value
        return out

    @classmethod
    def load(cls, stored: dict[str, Any]) -> Self:
        """Inverse of `dump`. Raises `KeyError` for a key that this code does not know."""
        names = {f.metadata["key"]: f.name for f in fields(cls)}  # type: ignore[arg-type]
        return cls(**{names[key]: value for key, value in stored.items()})


@dataclass(frozen=True)
class CallState(Stored):
    """One call of the open turn. Times are microseconds; `args`, `action`, `observation` are digests.

    `maybe_sent` is set by a start and cleared by a proof of no effect: only with it does a stopped call become unknown.
    `probing` is the epoch that has a probe out, `misses` counts look-ups that found nothing after the deadline.
    """

    status: str = short("st", "proposed")
    revision: int = short("rev", 1)
    label: str = short("label", "")
    tool: str = short("tool", "")
    definition: str = short("def", "")
    effect: str = short("eff", "opaque")
    args: str = short("args", "")
    objects: list[str] = short("objs", factory=list)
    approval: int = short("an", 0)
    approval_status: str = short("ap", "")
    expires: int = short("exp", 0)
    action: str = short("dg", "")
    exclude: list[int] = short("ex", factory=list)
    rule: str = short("rule", "")
    standing: str = short("std", "")
    key: str = short("key", "")
    attempt: int = short("att", 0)
    epoch: int = short("ep", 0)
    deadline: int = short("dl", 0)
    due: int = short("due", 0)
    started: int = short("t0", 0)
    resend_until: int = short("ru", 0)
    look_up: bool = short("lu", False)
    probes: int = short("pr", 0)
    probing: str = short("pe", "")
    misses: int = short("mi", 0)
    outcome: str = short("out", "")
    observation: str = short("obs", "")
    late: dict[str, Any] = short("late", factory=dict)
    question: bool = short("q", False)
    edited: bool = short("ed", False)
    maybe_sent: bool = short("ms", False)

    @property
    def ended(self) -> bool:
        """True when nothing more will happen to the call by itself."""
        return self.status in CALL_ENDS

    @property
    def has_effect(self) -> bool:
        """True for everything but reads."""
        return self.effect != "read"

    @property
    def pending(self) -> bool:
        """True while people are asked about it."""
        return self.status == "waiting" and self.approval_status == "pending"

    def to(self, status: str, **changes: Any) -> "CallState":
        """The call moved to `status` by the table of calls; raises `IllegalMove`."""
        return replace(self, status=move(CALL, self.status, status), **changes)

    def probe(self, now: int, cancelled: bool = False) -> tuple[str, int] | None:
        """How the next probe may ask and from when, or None if only a person can tell.

        A resend may cause the effect, so none goes out after a cancel. A look-up counts only after the deadline of
        the call: before it, the request may still be on its way.
        """
        if self.probes >= PROBES:
            return None
        if self.resend_until > max(self.due, now) and not cancelled:
            return "resend", self.due
        if self.look_up:
            return "lookup", max(self.due, self.deadline)
        return None


@dataclass(frozen=True)
class Ask(Stored):
    """An open request to the model: its attempt, who sent it, and why it failed, if it did.

    `tries` are the failures since it was first asked or since a person resumed.
    """

    attempt: int = short("n", 1)
    tries: int = short("tr", 0)
    epoch: int = short("ep", 0)
    due: int = short("due", 0)
    why: str = short("why", "")


@dataclass(frozen=True)
class Counts(Stored):
    """What was used up; `repeats`, `failures`, `refusals`, `claims` are rows without a break."""

    turns: int = short("turns", 0)
    calls: int = short("calls", 0)
    tokens: int = short("tok", 0)
    ms: int = short("ms", 0)
    repeats: int = short("rep", 0)
    failures: int = short("fail", 0)
    refusals: int = short("ref", 0)
    claims: int = short("cl", 0)


@dataclass(frozen=True)
class Stop(Stored):
    """A resumable stop."""

    status: str = short("st", "")
    reason: str = short("why", "")


@dataclass(frozen=True)
class RunState(Stored):
    """The fold of a run's events."""

    turn: int = short("turn", 0)
    segment: int = short("seg", 0)
    segment_bytes: int = short("segb", 0)
    segment_seq: int = short("segq", 0)
    ask: Ask | None = short("ask", None)
    calls: dict[int, CallState] = short("calls", factory=dict)
    notes: list[int] = short("notes", factory=list)
    signature: str = short("sig", "")
    limits: Limits = short("limits", DEFAULTS)
    n: Counts = short("n", factory=Counts)
    paused: bool = short("paused", False)
    cancel: bool = short("cancel", False)
    gave_up: bool = short("gave", False)
    stop: Stop | None = short("stop", None)
    end: str = short("end", "")
    t: int = short("t", 0)
    starter: int = short("by", 0)
    unattended: bool = short("un", False)
    checks: list[dict[str, Any]] = short("checks", factory=list)
    met: list[str] = short("met", factory=list)
    effects: dict[str, int] = short("fx", factory=dict)

    def with_call(self, ordinal: int, call: CallState) -> "RunState":
        """The state with one call replaced."""
        return replace(self, calls={**self.calls, ordinal: call})

    def having(self, *statuses: str) -> dict[int, CallState]:
        """Calls of the open turn in one of these statuses, in the model's order."""
        return {o: c for o, c in sorted(self.calls.items()) if c.status in statuses}

    @property
    def turn_signature(self) -> str:
        """Equal for two turns that called the same with the same results; empty for a turn without calls."""
        parts = [[c.tool, c.args, c.status, c.observation] for _, c in sorted(self.calls.items())]
        return digest(json.dumps(parts))[:16] if parts else ""


NESTED = {"ask": Ask, "n": Counts, "stop": Stop, "limits": Limits}


def dumps(state: RunState) -> str:
    """Stored text of a state, the same for equal states."""
    out: dict[str, Any] = {"v": VERSION, **state.dump()}
    for key in NESTED.keys() & out.keys():
        out[key] = out[key].dump()
    if state.calls:
        out["calls"] = {str(o): call.dump() for o, call in state.calls.items()}
    return json.dumps(out, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def loads(text: str) -> RunState:
    """State of a stored text. Raises `ValueError` if newer code wrote it."""
    stored = json.loads(text)
    if stored.pop("v") != VERSION:
        raise ValueError("the run's state was written by another version of the engine; run that version")
    for key in NESTED.keys() & stored.keys():
        stored[key] = NESTED[key].load(stored[key])  # type: ignore[attr-defined]
    if "calls" in stored:
        stored["calls"] = {int(o): CallState.load(call) for o, call in stored["calls"].items()}
    return RunState.load(stored)
