"""The runs of a filter as lines of a file, piece by piece."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from runs.engine.limits import SECOND
from runs.queries.run_filter import Filter
from runs.queries.run_list import RunRow, in_pieces

COLUMNS = (
    "run", "state", "stop_reason", "goal", "agent", "agent_version", "starter", "started_at", "last_event_at", "turns",
    "calls", "tokens", "cost", "active_ms", "waited_ms",
)  # fmt: skip
# A spreadsheet takes a cell that begins like this for a formula; the wide forms of some are taken for the narrow ones.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_lines(wanted: Filter) -> Iterator[str]:
    """A table with its head. It begins with the byte order mark, or a spreadsheet would not read Chinese."""
    yield "\ufeff" + as_csv([COLUMNS])
    for piece in in_pieces(wanted):
        yield as_csv([[harmless(value) for value in record(row).values()] for row in piece])


def json_lines(wanted: Filter) -> Iterator[str]:
    """One object a line; what is unknown is null."""
    for piece in in_pieces(wanted):
        yield "".join(json.dumps(record(row), ensure_ascii=False) + "\n" for row in piece)


def record(row: RunRow) -> dict[str, Any]:
    """What a file says of a run, in the order of `COLUMNS`. Times are UTC; the cost is unknown without a price."""
    run, n = row.run, row.state.n if row.state else None
    values = (
        run.pk, run.status, row.state.stop.reason if row.state and row.state.stop else None, run.goal,
        run.agent_version.agent.slug, run.agent_version.number, run.starter.get_username(), iso(run.started_at),
        iso(row.last), n and n.turns, n and n.calls, n and n.tokens, _cost(row), n and n.ms, row.waited if n else None,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def _cost(row: RunRow) -> str | None:
    """US dollars, exact; nothing where it is unknown or an estimate."""
    known = row.cost is not None and row.cost.micro is not None and not row.cost.estimate
    return f"{row.cost.micro / 1_000_000:.6f}" if known else None  # type: ignore[union-attr, operator]


def iso(us: int) -> str:
    """A time in UTC with milliseconds, of microseconds since 1970."""
    return datetime.fromtimestamp(us / SECOND, UTC).isoformat(timespec="milliseconds")


def harmless(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front; it is then shown as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def as_csv(rows: list[Any]) -> str:
    """Rows as lines of a table."""
    page = io.StringIO()
    csv.writer(page).writerows(rows)
    return page.getvalue()
