"""What the host believes about a run: bounded, however long the run. Evidence is in the `Call` rows, reasons in events.

Full names here, short keys only in the stored text: the state is written with every append.
"""

import json
from dataclasses import field
from typing import Any, Self, TypeVar

from runs.engine.canonical import digest
from runs.engine.frozen import Frozen
from runs.engine.limits import DEFAULTS, Limits
from runs.engine.machines import CALL, CALL_ENDS, move

VERSION = 1


class UnreadableState(ValueError):
    """This code cannot read a stored state; newer code wrote it. Nothing may be appended to it."""


S = TypeVar("S")
PROBES = 4
SHORT = {
    "status": "st", "revision": "rev", "label": "label", "tool": "tool", "definition": "def", "effect": "eff",
    "args": "args", "objects": "objs", "approval": "an", "approval_status": "ap", "expires": "exp", "action": "dg",
    "exclude": "ex", "rule": "rule", "standing": "std", "key": "key", "attempt": "att", "epoch": "ep",
    "deadline": "dl", "due": "due", "started": "t0", "resend_until": "ru", "look_up": "lu", "probes": "pr",
    "probing": "pe", "misses": "mi", "outcome": "out", "observation": "obs", "late": "late", "question": "q",
    "edited": "ed", "maybe_sent": "sent", "tries": "tr", "why": "why", "turns": "turns", "calls": "calls",
    "tokens": "tok", "ms": "ms", "repeats": "rep", "failures": "fail", "refusals": "ref", "claims": "cl",
    "reason": "re", "turn": "turn", "segment": "seg", "segment_bytes": "segb", "segment_seq": "segq", "ask": "ask",
    "notes": "notes", "signature": "sig", "limits": "limits", "n": "n", "paused": "paused", "cancel": "cancel",
    "gave_up": "gave", "stop": "stop", "end": "end", "t": "t", "starter": "by", "unattended": "un",
    "checks": "checks", "met": "met", "effects": "fx",
}  # fmt: skip
LONG = {key: name for name, key in SHORT.items()}


def replace(old: S, **changes: Any) -> S:
    """As `dataclasses.replace` for a state, many times faster: there is no `__init__` that would check anything."""
    new = object.__new__(type(old))
    new.__dict__.update(old.__dict__, **changes)
    return new


class Stored(Frozen):
    """Frozen dataclasses that leave defaults out of their stored form."""

    def dump(self) -> dict[str, Any]:
        """Stored form: short keys, defaults left out."""
        return {SHORT[name]: value for name, value in self.own().items()}

    @classmethod
    def load(cls, stored: dict[str, Any]) -> Self:
        """Inverse of `dump`. Raises `KeyError` for a key that this code does not know."""
        return cls(**{LONG[key]: value for key, value in stored.items()})


class CallState(Stored):
    """One call of the open turn. Times are microseconds; `args`, `action`, `observation` are digests.

    `maybe_sent` is set when an effect falls in doubt and cleared when it is settled: only with it does a stopped call
    become unknown again. A later request that was proven harmless proves nothing about the earlier one.
    `probing` is the epoch that has a probe out, `misses` counts look-ups that found nothing after the deadline.
    """

    status: str = "proposed"
    revision: int = 1
    label: str = ""
    tool: str = ""
    definition: str = ""
    effect: str = "opaque"
    args: str = ""
    objects: list[str] = field(default_factory=list)
    approval: int = 0
    approval_status: str = ""
    expires: int = 0
    action: str = ""
    exclude: list[int] = field(default_factory=list)
    rule: str = ""
    standing: str = ""
    key: str = ""
    attempt: int = 0
    epoch: int = 0
    deadline: int = 0
    due: int = 0
    started: int = 0
    resend_until: int = 0
    look_up: bool = False
    probes: int = 0
    probing: str = ""
    misses: int = 0
    outcome: str = ""
    observation: str = ""
    late: dict[str, Any] = field(default_factory=dict)
    question: bool = False
    edited: bool = False
    maybe_sent: bool = False

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


class Ask(Stored):
    """An open request to the model: its attempt, who sent it, and why it failed, if it did.

    `tries` are the failures since it was first asked or since a person resumed.
    """

    attempt: int = 1
    tries: int = 0
    epoch: int = 0
    due: int = 0
    why: str = ""


class Counts(Stored):
    """What was used up; `repeats`, `failures`, `refusals`, `claims` are rows without a break."""

    turns: int = 0
    calls: int = 0
    tokens: int = 0
    ms: int = 0
    repeats: int = 0
    failures: int = 0
    refusals: int = 0
    claims: int = 0


class Stop(Stored):
    """A resumable stop."""

    status: str = ""
    reason: str = ""


class RunState(Stored):
    """The fold of a run's events."""

    turn: int = 0
    segment: int = 0
    segment_bytes: int = 0
    segment_seq: int = 0
    ask: Ask | None = None
    calls: dict[int, CallState] = field(default_factory=dict)
    notes: list[int] = field(default_factory=list)
    signature: str = ""
    limits: Limits = DEFAULTS
    n: Counts = field(default_factory=Counts)
    paused: bool = False
    cancel: bool = False
    gave_up: bool = False
    stop: Stop | None = None
    end: str = ""
    t: int = 0
    starter: int = 0
    unattended: bool = False
    checks: list[dict[str, Any]] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    effects: dict[str, int] = field(default_factory=dict)

    @property
    def tampered(self) -> bool:
        """True while an integrity stop stands: only an admin's sign-off clears it."""
        return self.stop is not None and self.stop.reason == "integrity"

    @property
    def last_turn(self) -> bool:
        """True while the open turn is the last that the limit allows: only host tools are taken then."""
        return self.n.turns >= self.limits.turns

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


_encode = json.JSONEncoder(default=lambda x: x.dump(), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
NESTED = {"ask": Ask, "n": Counts, "stop": Stop, "limits": Limits}


def dumps(state: RunState) -> str:
    """Stored text of a state, the same for equal states."""
    out: dict[str, Any] = {"v": VERSION, **state.dump()}
    if state.calls:
        out["calls"] = {str(o): call for o, call in state.calls.items()}
    return str(_encode(out))


def loads(text: str) -> RunState:
    """State of a stored text. Raises `UnreadableState` for a version or a field that this code does not know."""
    stored = json.loads(text)
    version = stored.pop("v")
    try:
        if version != VERSION:
            raise ValueError("another version of the engine")
        for key in NESTED.keys() & stored.keys():
            stored[key] = NESTED[key].load(stored[key])  # type: ignore[attr-defined]
        if "calls" in stored:
            stored["calls"] = {int(o): CallState.load(call) for o, call in stored["calls"].items()}
        return RunState.load(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableState(f"the run's state (version {version}) was written by other code: {error}") from error
