"""Who gets what from every address: the table that the tests hold the product to, and docs/rights.md shows.

`python -m tests.pages.table` writes the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PEOPLE = ("", "stranger", "auditor", "admin", "operator", "reviewer")
ALL = {"": 302, "stranger": 404, "auditor": 200, "admin": 200, "operator": 200, "reviewer": 200}
OPERATORS = ALL | {"auditor": 403, "admin": 403}
NOTERS = ALL | {"admin": 403}
ADMINS = ALL | {"auditor": 403, "operator": 403, "reviewer": 403}
OPEN = dict.fromkeys(PEOPLE, 200)
# By route: what GET answers (None: it is a form's target alone), what an empty POST answers to those who may.
ROUTES: dict[str, tuple[dict[str, int] | None, dict[str, int] | None]] = {
    "sign-in": (OPEN | dict.fromkeys(PEOPLE[1:], 302), OPEN | dict.fromkeys(PEOPLE, 422)),
    "sign-out": (None, dict.fromkeys(PEOPLE, 302)),
    "password": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 422)),
    "preferences": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 302)),
    "look": (None, dict.fromkeys(PEOPLE, 302)),
    "inbox": (ALL, None),
    "runs": (ALL, None),
    "runs-csv": (ALL, None),
    "runs-jsonl": (ALL, None),
    "bulk-new": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "bulk": (ALL, None),
    "bulk-stop": (None, OPERATORS | {"operator": 302, "reviewer": 409}),
    "new": (OPERATORS, None),
    "new-run": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "run": (ALL, None),
    "run-csv": (ALL, None),
    "run-jsonl": (ALL, None),
    "next-error": (ALL | dict.fromkeys(PEOPLE[2:], 302), None),
    "next-decision": (ALL | dict.fromkeys(PEOPLE[2:], 302), None),
    "event": (ALL, None),
    "attest": (ALL, ALL | dict.fromkeys(PEOPLE[2:], 422)),
    "stopped": (ALL, None),
    "save-view": (None, ALL | dict.fromkeys(PEOPLE[2:], 302)),
    "drop-view": (None, ALL | dict.fromkeys(PEOPLE[2:], 404)),
    "approval": (ALL, None),
    "approve": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "reject": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "edit": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "question": (ALL, None),
    "answer": (None, OPERATORS | {"operator": 422, "reviewer": 422}),
    "incidents": (ALL, None),
    "incident": (ALL, ALL | {"auditor": 403, "admin": 422, "operator": 422, "reviewer": 422}),
    "health": (ALL, None),
    "overview": (ALL, None),
    "agents": (ALL, None),
    "agent": (ALL, None),
    "tools": (ALL, ADMINS | {"admin": 422}),
    "tool": (ALL, ADMINS | {"admin": 422}),
    "policies": (ALL, ADMINS | {"admin": 422}),
    "models": (ALL, ADMINS | {"admin": 422}),
    "model": (ALL, ADMINS | {"admin": 422}),
    "people": (ALL, None),
    "person": (ALL, ADMINS | {"admin": 422}),
    "safe-mode": (ALL, ADMINS | {"admin": 422}),
    "admin-door": ({"": 302, "stranger": 404} | dict.fromkeys(PEOPLE[2:], 403), None),
    "run-act:note": (NOTERS, NOTERS | {"auditor": 422, "operator": 422, "reviewer": 422}),
    "run-act:pause": (OPERATORS, None),
    "run-act:resume": (OPERATORS, OPERATORS | {"operator": 409, "reviewer": 409}),
    "run-act:cancel": (OPERATORS, None),
    "run-act:extend": (OPERATORS, OPERATORS | {"operator": 422, "reviewer": 422}),
    "run-act:give-up": (OPERATORS, OPERATORS | {"operator": 409, "reviewer": 409}),
    "run-act:sign-off": (ADMINS, ADMINS | {"admin": 422}),
}
# What a socket does: it stays open, or it closes with a code: 4401 not signed in, 4404 nothing to see.
SEEING = {"": 4401, "stranger": 4404} | dict.fromkeys(PEOPLE[2:], "open")
SOCKETS: dict[str, dict[str, int | str]] = dict.fromkeys(("ws/runs/RUN/", "ws/runs/", "ws/inbox/", "ws/shell/"), SEEING)
HEAD = """# Rights

Written by `python -m tests.pages.table`; do not edit. The tests hold every address to this table, one request a cell;
an address without a row fails. `stranger` is signed in and in no group; to them a run that exists and one that does not
look alike. A method that is not listed gets 405.

302 leads to the sign-in page, or on after something was done. 403 says which group is needed, 404 says nothing, 409: it
does not stand so, 422: the form was empty. Sockets stay open or close with a code: 4401 not signed in, 4404 nothing to
see.

"""


def page() -> str:
    """docs/rights.md."""
    names = [who or "nobody" for who in PEOPLE]
    lines = [f"| address | method | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for route, (get, post) in ROUTES.items():
        for method, answers in (("GET", get), ("POST", post)):
            if answers:
                lines.append(_line(route, method, answers))
    lines += [_line(route, "socket", answers) for route, answers in SOCKETS.items()]
    return HEAD + "\n".join(lines) + "\n"


def _line(route: str, method: str, answers: Mapping[str, int | str]) -> str:
    return f"| {route} | {method} | {' | '.join(str(answers[who]) for who in PEOPLE)} |"


if __name__ == "__main__":
    (Path(__file__).resolve().parents[2] / "docs" / "rights.md").write_text(page())
