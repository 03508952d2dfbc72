"""Bounds of a run. Human waits never count: active time is the sum of what answers and outcomes took."""

from dataclasses import asdict, dataclass, fields
from typing import Any

SECOND = 1_000_000  # times are integer microseconds everywhere
CALLS_PER_TURN = 16


class BadLimits(ValueError):
    """A limit is unknown or not a positive whole number; the message names it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`ms` is active time in milliseconds, `probes` the delays of probes in seconds; the rest are counts."""

    turns: int = 20
    calls: int = 60
    ms: int = 30 * 60 * 1000
    repeats: int = 3
    failures: int = 5
    refusals: int = 3
    claims: int = 3
    attempts: int = 3
    asks: int = 4
    crashes: int = 3
    segment_bytes: int = 400_000
    probes: tuple[float, ...] = (0, 2, 10, 60)

    def dump(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        return {name: _plain(value) for name, value in asdict(self).items() if value != getattr(DEFAULTS, name)}

    @classmethod
    def load(cls, given: dict[str, Any]) -> "Limits":
        """Defaults with `given` laid over them. Raises `BadLimits`."""
        known = {f.name for f in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise BadLimits(f"limit {name!r} is not known; known are {', '.join(sorted(known))}")
            if name != "probes" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise BadLimits(f"limit {name!r} must be a whole number of at least 1, not {value!r}")
        values: dict[str, Any] = {name: tuple(v) if name == "probes" else v for name, v in given.items()}
        return cls(**values)

    def probe_due(self, now: int, probes: int) -> int:
        """When the next probe may go out, `probes` having been sent."""
        return now + int(self.probes[min(probes, len(self.probes) - 1)] * SECOND)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


DEFAULTS = Limits()
