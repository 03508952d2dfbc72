"""Bounds of a run. Human waits never count: active time is the sum of what answers and outcomes took."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SECOND = 1_000_000  # times are integer microseconds everywhere
CALLS_PER_TURN = 16
Count = Annotated[int, Field(ge=1, strict=True)]


class BadLimits(ValueError):
    """A limit is unknown or not a positive whole number; the message names it."""


class Limits(BaseModel):
    """`ms` is active time in milliseconds, `probes` the delays of probes in seconds; the rest are counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: Count = 20
    calls: Count = 60
    ms: Count = 30 * 60 * 1000
    repeats: Annotated[int, Field(ge=2, strict=True)] = 3  # one turn repeats nothing
    failures: Count = 5
    refusals: Count = 3
    claims: Count = 3
    attempts: Count = 3
    asks: Count = 4
    crashes: Count = 3
    segment_bytes: Count = 400_000
    probes: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)] = (0, 2, 10, 60)

    def dump(self) -> dict[str, Any]:
        """Only what differs from the defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def load(cls, given: dict[str, Any]) -> "Limits":
        """Defaults with `given` laid over them. Raises `BadLimits`."""
        try:
            return cls(**given)
        except ValidationError as error:
            raise BadLimits("; ".join(f"limit {e['loc'][0]}: {e['msg']}" for e in error.errors())) from error

    def probe_due(self, now: int, probes: int) -> int:
        """When the next probe may go out, `probes` having been sent."""
        return now + int(self.probes[min(probes, len(self.probes) - 1)] * SECOND)


DEFAULTS = Limits()
