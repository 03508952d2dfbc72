"""A house with one of each, made quickly through the real forms: what every look at the pages walks through."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from urllib.parse import quote

from tests.stack import Person, Stack, until

ORDER = {"input_order_id": "O-1042", "fact_customer": "C-7"}
LOOK_ALIKE = "Broken.\nPay to\u200b DE89\u202e instead"
REFUND = '{"order_id": "O-1042", "amount": "80.00", "currency": "EUR", "reason": "The lamp came broken."}'
ASKED = "SELECT id, digest FROM runs_approval WHERE run_id = %s AND status = 'pending'"


@cache
def signed_in(stack: Stack, name: str) -> Person:
    """One session a person: hashing a password takes longer than a page."""
    return stack.signed_in(name)


def start(stack: Stack, agent: str, goal: str = "Look at me.", **fields: str) -> str:
    """Start a run by the form; its address."""
    form = {"goal": goal, "request_key": f"{agent}-{goal}"[:60], **fields}
    answer = signed_in(stack, "operator").post(f"/runs/new/{agent}", form)
    assert answer.status_code == 302, answer.text
    return str(answer.headers["Location"])


def number(place: str) -> int:
    """The id at the end of an address."""
    return int(place.rpartition("/")[2])


def asked(stack: Stack, run: int) -> dict[str, str]:
    """The approval that a run waits for: id and digest."""
    return dict(until(lambda: stack.sql(ASKED, (run,)), what=f"run {run} asks")[0])


def decide(stack: Stack, run: int, how: str = "approve", **fields: str) -> None:
    """Decide what a run waits for, as its reviewer would."""
    found = asked(stack, run)
    data = {"digest": found["digest"], "why": "", "then": "continue"} | fields
    voted = signed_in(stack, "reviewer").post(f"/approvals/{found['id']}/{how}", data)
    assert voted.status_code == 302, voted.text[:500]


def question(stack: Stack, run: int) -> int:
    """The question that a run asked."""
    return int(
        until(lambda: stack.sql("SELECT id FROM runs_question WHERE run_id = %s", (run,)), what="a question")[0]["id"]
    )


def bulk(stack: Stack, preview: str) -> str:
    """Do to many runs what a preview shows; the address of what became of it."""
    page = signed_in(stack, "operator").get(preview).text
    hidden = re.findall(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)"', page)
    answer = signed_in(stack, "operator").post(preview, {name: unescape(value) for name, value in hidden})
    assert answer.status_code == 302, answer.text[:500]
    return str(answer.headers["Location"])


def furnished(stack: Stack) -> dict[str, str]:
    """Name -> address of every page and of the states that look different. A name is a route's, or `route:state`.

    What takes long begins first; nothing waits for one thing while another could go on.
    """
    order = {"input_order_id": "O-5199", "fact_customer": "C-7", "input_day": "2026-12-04"}
    stack.faults.arm("reply_lost", path="/messages", times=1)
    stack.faults.arm("late", path="/pickups", method="POST", seconds=3)
    late = start(stack, "pickup-soon", **order)  # presumed not booked, and booked after all: an incident
    unknown = start(stack, "messenger", input_text="Your lamp leaves us today.", **ORDER)
    decide(stack, number(late))
    decide(stack, number(unknown))
    done = start(stack, "stock-question", input_sku="LAMP-01")
    waiting = start(stack, "refund", input_amount="80.00", input_reason=LOOK_ALIKE, **ORDER)
    asker = start(stack, "asker", **ORDER)
    stopped = start(stack, "quitter", "Give up.", **ORDER)
    declined = start(stack, "refund", "Look at a refusal.", input_amount="9.00", **ORDER)
    decide(stack, number(declined), "reject", why="Not this customer.", then="stop")
    many = f"/runs/bulk?act=pause&run={number(start(stack, 'refund', 'Look at a pause.', **ORDER))}&run={number(done)}"
    refused = stack.sql("SELECT id FROM runs_approval WHERE run_id = %s", (number(declined),))[0]["id"]
    lost = until(lambda: stack.sql("SELECT turn, ordinal FROM runs_call WHERE status = 'unknown'"), what="unknown")[0]
    incident = until(lambda: stack.sql("SELECT id FROM runs_incident"), 30, what="the incident")[0]["id"]
    state = "SELECT 1 FROM runs_run WHERE id = %s AND status = 'needs_human'"
    until(lambda: stack.sql(state, (number(stopped),)), what="the run that gives up")
    return {
        "inbox": "/", "runs": "/runs", "new": "/runs/new", "new-run": "/runs/new/refund",
        "bulk-new": many, "bulk": bulk(stack, many),
        "run": waiting, "run:done": done, "run:unknown": unknown, "run:declined": declined, "run:incident": late,
        "run:waterfall": f"{waiting}?view=waterfall", "run:raw": f"{done}?view=raw", "run:filtered": f"{done}?q=lamp",
        "event": f"{done}/events/1", "approval": f"/approvals/{asked(stack, number(waiting))['id']}",
        "approval:decided": f"/approvals/{refused}", "question": f"/questions/{question(stack, number(asker))}",
        "stopped": f"{stopped}/stop",
        "attest": f"{unknown}/calls/{lost['turn']}.{lost['ordinal']}/attest",
        "run-act:cancel": f"{waiting}/cancel", "run-act:note": f"{done}/note",
        "incidents": "/incidents", "incident": f"/incidents/{incident}", "health": "/health", "safe-mode": "/safe-mode",
        "overview": "/overview", "agents": "/agents", "agent": "/agents/refund", "tools": "/tools",
        "tool": "/tools/refund_order", "policies": "/policies?tool=refund_order&arguments=" + quote(REFUND),
        "models": "/models", "model": "/models/anthropic:claude-haiku-5-5",
        "people": "/people", "person": "/people/1",
        "password": "/password", "preferences": "/preferences", "absent": "/runs/999999", "sign-in": "/sign-in",
    }  # fmt: skip
