"""What is measured inside of an installation's own settings: `manage.py shell -c "from bench.inside import main; ..."`.

Prints a list of the arguments of `bench.report.result`, one for each result.
"""

import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from django.db import connection
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import override_settings

from runs.models import Approval, Call, Event, Incident, Run
from runs.queries import runs as run_queries
from runs.queries.timeline import timeline
from runs.queries.viewer import Viewer

# The peer of `row_render`: 40 lines a row, ten of them with a variable or a condition, about 1.4 KB of HTML.
LINES = ["<td class='cell'>{{ row.name }}</td>", "<td>{% if row.on %}on{% else %}off{% endif %}</td>"]
LINES += ["<td class='cell'>{{ row.n }}</td>"] * 8 + ["<td class='cell of the row'>as it is</td>"] * 30
PLAIN = Template("{% for row in rows %}<tr>" + "\n".join(LINES) + "</tr>{% endfor %}")


def main(name: str, turns: int, rounds: int) -> None:
    """Measure and print."""
    print(json.dumps({"row_render": row_render, "list_pages": list_pages}[name](turns, rounds)))


class Clock:
    """Counts statements, and adds up what they take."""

    ms, count = 0.0, 0

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        """Around one statement (`connection.execute_wrapper`)."""
        began = time.perf_counter()
        try:
            return execute(*args)
        finally:
            self.count += 1
            self.ms += (time.perf_counter() - began) * 1000


clock = Clock()
TIMES = 7


def timed(act: Callable[[], Any], times: int = TIMES) -> float:
    """Milliseconds, the median of so many."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def row_render(turns: int, rounds: int) -> list[dict[str, Any]]:
    """Per row, both as one page of rows."""
    from django.contrib.auth.models import User

    from tests.longrun import long_run

    run = long_run(200)
    found = run_queries.find_run(run.pk)
    assert found is not None
    viewer = Viewer.of(User.objects.get(username="auditor"))
    cards = timeline(found).cards
    rows = [{"on": n % 3, "name": f"Row {n}", "n": n} for n in range(len(cards))]
    context = {"run": found, "viewer": viewer, "oob": True, "added": cards, "changed": []}
    ours, peer = [], []
    for _ in range(max(rounds, 1)):
        ours.append(timed(lambda: render_to_string("run/cards.html#frame", context)) / len(cards))
        peer.append(timed(lambda: PLAIN.render(Context({"rows": rows}))) / len(cards))
    return [{"what": "a card over a row", "unit": "ms", "ours": ours, "peer": peer, "goal": 1.0, "stretch": 0.35}]


def list_pages(turns: int, rounds: int) -> list[dict[str, Any]]:
    """The pages that list, by their views, as an operator who may decide sees them."""
    from django.contrib.auth.models import User

    approvals, events = (10_000, 1_000_000) if turns > 100 else (300, 3_000)
    crowd(approvals, events)
    client = Client()
    client.force_login(User.objects.get(username="reviewer"))
    run = Run.objects.select_related("agent_version__agent", "starter")
    asked = Approval.objects.filter(status="pending").select_related("run__agent_version__agent", "run__starter")
    pages: dict[str, Callable[[], Any]] = {
        "/": lambda: list(asked.order_by("expires_at", "id")[:50]),
        "/runs": lambda: list(run.order_by("-id")[:50]),
        "/runs?status=waiting": lambda: list(run.filter(status="waiting_approval").order_by("-id")[:50]),
        "/incidents": lambda: list(Incident.objects.select_related("run").order_by("-id")[:50]),
    }
    found = []
    with override_settings(ALLOWED_HOSTS=["*"]):
        for path, bare in pages.items():
            assert client.get(path).status_code == 200, path
            inside, ours, peer = [], [], []
            for _ in range(max(rounds, 1)):
                with connection.execute_wrapper(clock):
                    clock.ms, clock.count = 0.0, 0
                    ours.append(timed(lambda path=path: client.get(path)))
                    inside.append(clock.ms / TIMES)
                peer.append(timed(bare))
            what = f"{path} with {approvals} open approvals and {events} events"
            level = {"unit": "ms", "peer": peer, "goal": 3, "stretch": 2}
            found.append(level | {"what": f"{what}: in the database, {clock.count // TIMES} queries", "ours": inside})
            found.append(level | {"what": f"{what}: the whole page", "ours": ours})
    return found


def crowd(approvals: int, events: int) -> None:
    """So many runs that wait for an approval, and so many events, copied from one real run by the database itself."""
    from tests.longrun import asking_run

    run = asking_run()
    last = Run.objects.order_by("-id").values_list("pk", flat=True)[0]
    own = Event.objects.filter(run=run).count()
    series, many = f"generate_series(1, {approvals - 1}) AS nth", max(1, events // (approvals * own))
    place = {"run_id": f"{last} + nth"}
    copy(Run, f"id = {run.pk}", series, {"id": f"{last} + nth", "uid": "'copy-' || nth", "request_key": "NULL"})
    copy(Call, f"run_id = {run.pk}", series, place | {"key": "NULL"})
    copy(Approval, f"run_id = {run.pk}", series, place, without="id")
    each = f"{series}, generate_series(0, {many - 1}) AS mth"
    copy(Event, f"run_id = {run.pk}", each, place | {"seq": "seq + 1000 * mth"})
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def copy(model: Any, where: str, series: str, given: dict[str, str], without: str = "") -> None:
    """Insert the rows of a table again for each of a series, with other values in some columns."""
    names = [field.column for field in model._meta.concrete_fields if field.column and field.column != without]
    into, values = ", ".join(f'"{name}"' for name in names), ", ".join(given.get(name, f'"{name}"') for name in names)
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM {table}, {series} WHERE {where}")
