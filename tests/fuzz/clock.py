"""One clock for everything: this process, and the database.

The product asks the operating system and the database for the time; here both are told the same virtual one. On
PostgreSQL a function `clock_timestamp` that stands before the system's in the search path answers from a setting.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import connection

SECOND = 1_000_000
START = 1_800_000_000 * SECOND
PG = """CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT to_timestamp(current_setting('fuzz.now')::numeric / 1000000) $$"""


class Clock:
    """Virtual time in microseconds; it only moves when told. `skew` is how wrong this host's own clock is."""

    def __init__(self, monkeypatch: Any) -> None:
        self.now, self.skew = START, 0
        self.timers: list[tuple[int, int, Any]] = []
        self.count = 0
        monkeypatch.setattr(time, "time", lambda: self.now / SECOND)
        monkeypatch.setattr(time, "time_ns", lambda: self.now * 1000)
        monkeypatch.setattr(time, "monotonic", lambda: self.now / SECOND)
        monkeypatch.setattr(time, "clock_gettime_ns", lambda which: (self.now + self.skew) * 1000)
        self.postgres = connection.vendor == "postgresql"
        if self.postgres:
            with connection.cursor() as cursor:
                cursor.execute(PG)
                cursor.execute("SET LOCAL search_path = public, pg_catalog")
        self._tell()

    def _tell(self) -> None:
        if self.postgres:
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('fuzz.now', %s, true)", [str(self.now)])

    def at(self, when: int, do: Any) -> None:
        """Do something when the clock has come there."""
        self.count += 1
        self.timers.append((when, self.count, do))

    def advance(self, micros: int) -> None:
        """Let time pass, with everything that happens on its way."""
        end = self.now + max(1, int(micros))
        while due := [timer for timer in self.timers if timer[0] <= end]:
            first = min(due)
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            first[2]()
        self.now = end
        self._tell()
