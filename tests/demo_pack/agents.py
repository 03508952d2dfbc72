"""One agent per script of this package, with the dict form of `demo.agents`."""

from typing import Any

from demo.agents import AGENTS as DEMO
from demo.agents import CUSTOMER, ORDER, REFUND_PAID
from tests.demo_pack.scripts import SCRIPTS

OTHER = {"name": "other_id", "label": "Another order", "trusted": True, "required": False, "example": ""}
ORDER_READ = {"id": "order_read", "tool": "get_order", "field": "order_id", "equals_input": "order_id"}
CHECKS: dict[str, list[dict[str, str]]] = {
    "three-calls": [{"id": "order_read", "tool": "get_order"}],
    "edit-watch": [REFUND_PAID],
    "text-end": [ORDER_READ],
    "repeater": [ORDER_READ],
}


def _agent(slug: str) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": slug.replace("-", " ").replace("_", " ").capitalize(),
        "description": f"For story tests: plays the script {slug}.",
        "instructions": "Play the script.",
        "model": f"scripted:{slug}",
        "tools": ["get_order", "get_shipment", "refund_order"],
        "inputs": [ORDER, OTHER],
        "facts": CUSTOMER,
        "example_goal": "Show what the host does with this model.",
        "limits": {},
        "acceptance": CHECKS.get(slug, []),
        "autonomy": "supervised",
    }


PICKUP = next(agent for agent in DEMO if agent["slug"] == "pickup")
PICKUP_SOON = PICKUP | {
    "slug": "pickup-soon",
    "model": "scripted:pickup-soon",
    "tools": ["book_pickup_soon", "write_delivery_note"],
    "acceptance": [],
}
MEDLEY = _agent("medley") | {
    "tools": [
        "lookup_stock", "get_order", "write_delivery_note", "refund_order", "open_investigation", "book_pickup_soon",
        "send_message",
    ],
    "inputs": [ORDER, {"name": "seed", "label": "Seed", "trusted": True, "required": True, "example": "1"}],
}  # fmt: skip
WORKSHOP = _agent("workshop") | {"tools": ["edit_file", "run_command"], "inputs": [], "facts": {}}
OWN = {
    "workshop": WORKSHOP,
    "medley": MEDLEY,
    "two-effects": _agent("two-effects") | {"tools": MEDLEY["tools"]},
    "pickup-soon": PICKUP_SOON,
}
AGENTS: tuple[dict[str, Any], ...] = tuple(OWN.get(slug) or _agent(slug) for slug in SCRIPTS)
