"""Paths of the service. `Site.handle` answers one request; the server only speaks HTTP around it."""

import json
import logging
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from demo.service import effects, page
from demo.service.faults import MEANING, Board, from_fields
from demo.service.keys import Keys
from demo.service.money import text as money
from demo.service.store import Store
from demo.service.web import HTML, Answer, Problem, Request, not_found, reply

log = logging.getLogger("demo.service")

Pause = Callable[[], None]
Handler = Callable[["Site", Request, str, Pause], Answer]


class Site:
    """The parts of one running service."""

    def __init__(self, store: Store, retention: float) -> None:
        self.store = store
        self.keys = Keys(store, retention)
        self.faults = Board()

    def handle(self, request: Request, pause: Pause = lambda: None) -> Answer:
        """The answer to `request`; `pause` is called once, before an effect or a reading."""
        try:
            handler, name = _route(request)
            return handler(self, request, name, pause)
        except Problem as problem:
            return problem.answer()
        except Exception:
            log.exception("request %s failed", request.id)
            return Problem(500, "internal", "something broke").answer()


def _customer(request: Request) -> str:
    if not (customer := request.headers.get("x-customer", "")):
        raise Problem(401, "no_customer", "X-Customer is missing")
    return customer


def get_order(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """One order of the caller, with what can still be refunded."""
    customer = _customer(request)
    pause()
    row = site.store.row("SELECT * FROM orders WHERE id = ? AND customer = ?", name, customer)
    if row is None:
        raise not_found()
    ships = [r["id"] for r in site.store.rows("SELECT id FROM shipments WHERE order_id = ? ORDER BY id", name)]
    sums = {
        "total": money(row["total"]),
        "refunded": money(row["refunded"]),
        "refundable": money(row["total"] - row["refunded"]),
    }
    return reply(row | sums | {"items": json.loads(row["items"]), "currency": "EUR", "shipments": ships})


def get_shipment(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """One shipment of an order of the caller."""
    customer = _customer(request)
    pause()
    sql = "SELECT s.* FROM shipments s JOIN orders o ON o.id = s.order_id WHERE s.id = ? AND o.customer = ?"
    return _found(site.store.row(sql, name, customer))


def get_customer(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """The caller's own record."""
    customer = _customer(request)
    pause()
    return _found(site.store.row("SELECT * FROM customers WHERE id = ? AND id = ?", name, customer))


def get_stock(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Where a product lies. A product that lies nowhere has an empty list; an unknown product is not found."""
    pause()
    product = site.store.row("SELECT * FROM products WHERE sku = ?", name)
    lines = site.store.rows("SELECT warehouse, quantity FROM stock WHERE sku = ? ORDER BY warehouse", name)
    return _found(product and product | {"stock": lines})


def get_effect(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """One refund, investigation, message or pickup on an order of the caller."""
    customer = _customer(request)
    pause()
    table = {"R": "refunds", "I": "investigations", "M": "messages", "P": "pickups"}[name[0]]
    sql = f"SELECT e.* FROM {table} e JOIN orders o ON o.id = e.order_id WHERE e.n = ? AND o.customer = ?"
    row = site.store.row(sql, int(name[2:]), customer)
    if row is None:
        raise not_found()
    del row["n"]
    if "amount" in row:
        row |= {"amount": money(row["amount"]), "currency": "EUR"}
    return reply({"id": name} | row)


def post_refund(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """See `effects.refund`."""
    _customer(request)
    return effects.refund(site.keys, request, pause)


def post_investigation(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """See `effects.investigation`."""
    _customer(request)
    return effects.investigation(site.keys, request, pause)


def post_message(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """See `effects.message`."""
    _customer(request)
    return effects.message(site.store, request, pause)


def post_pickup(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """See `effects.pickup`."""
    _customer(request)
    return effects.pickup(site.store, request, pause)


def put_delivery_note(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """See `effects.delivery_note`."""
    _customer(request)
    return effects.delivery_note(site.store, request, pause)


def find_pickups(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Pickups of the caller with a reference, the oldest first; an empty list where there is none."""
    customer = _customer(request)
    pause()
    ours = "e.reference = ? AND o.customer = ?"
    sql = f"SELECT e.* FROM pickups e JOIN orders o ON o.id = e.order_id WHERE {ours} ORDER BY n"
    found = site.store.rows(sql, request.query.get("reference", ""), customer)
    return reply({"pickups": [{"id": f"P-{row.pop('n')}"} | row for row in found]})


def ledger_json(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Real effects, filtered by key, order or kind, with their counts."""
    rows = _ledger(site, request)
    return reply({"total": len(rows), "by_key": _count(rows, "key"), "by_kind": _count(rows, "kind"), "rows": rows})


def ledger_page(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """The same for people."""
    rows = _ledger(site, request)
    return Answer(body=page.ledger(rows, _count(rows, "key")).encode(), type=HTML)


def faults_page(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Form and armed faults; JSON for a client that asks for JSON."""
    if "application/json" in request.headers.get("accept", ""):
        return reply({"faults": site.faults.armed(), "kinds": MEANING})
    return Answer(body=page.faults(site.faults.armed()).encode(), type=HTML)


def faults_form(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """The form was sent: clear, start over, or arm one fault."""
    fields: dict[str, Any] = dict(parse_qsl(request.body.decode("utf-8", "replace")))
    match fields.pop("do", "arm"):
        case "clear":
            site.faults.clear(fields.get("id", ""))
        case "start_over":
            site.faults.clear()
            site.store.start_over()
        case _:
            site.faults.arm(from_fields({"times": None} | fields))
    return Answer(status=303, headers=(("Location", "/admin/faults"),), type=HTML)


def faults_put(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Arm one fault; one with the same id is replaced."""
    site.faults.arm(from_fields(request.json()))
    return reply({"faults": site.faults.armed()})


def faults_delete(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """Clear one fault (`?id=`) or all."""
    site.faults.clear(request.query.get("id", ""))
    return reply({"faults": site.faults.armed()})


def health(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """True only if the database answers."""
    site.store.row("SELECT 1 AS one")
    return reply({"ok": True})


def style(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """The sheet of the two pages."""
    return Answer(body=page.CSS.encode(), type="text/css; charset=utf-8")


def home(site: Site, request: Request, name: str, pause: Pause) -> Answer:
    """The ledger is what people come for."""
    return Answer(status=303, headers=(("Location", "/ledger"),), type=HTML)


ROUTES: tuple[tuple[str, re.Pattern[str], Handler], ...] = (
    ("GET", re.compile(r"/orders/(O-[0-9]{1,9})"), get_order),
    ("GET", re.compile(r"/shipments/(L-[0-9]{1,9})"), get_shipment),
    ("GET", re.compile(r"/customers/(C-[0-9]{1,9})"), get_customer),
    ("GET", re.compile(r"/stock/([A-Z0-9-]{1,30})"), get_stock),
    ("GET", re.compile(r"/(?:refunds|investigations|messages|pickups)/([RIMP]-[0-9]{1,9})"), get_effect),
    ("POST", re.compile(r"/refunds()"), post_refund),
    ("POST", re.compile(r"/investigations()"), post_investigation),
    ("POST", re.compile(r"/messages()"), post_message),
    ("POST", re.compile(r"/pickups()"), post_pickup),
    ("GET", re.compile(r"/pickups()"), find_pickups),
    ("PUT", re.compile(r"/delivery-notes()"), put_delivery_note),
    ("GET", re.compile(r"/ledger\.json()"), ledger_json),
    ("GET", re.compile(r"/ledger()"), ledger_page),
    ("GET", re.compile(r"/admin/faults()"), faults_page),
    ("POST", re.compile(r"/admin/faults()"), faults_form),
    ("PUT", re.compile(r"/admin/faults()"), faults_put),
    ("DELETE", re.compile(r"/admin/faults()"), faults_delete),
    ("GET", re.compile(r"/healthz()"), health),
    ("GET", re.compile(r"/style\.css()"), style),
    ("GET", re.compile(r"/()"), home),
)


def _route(request: Request) -> tuple[Handler, str]:
    hits = [(method, match[1], handler) for method, path, handler in ROUTES if (match := path.fullmatch(request.path))]
    if not hits:
        raise not_found()
    for method, name, handler in hits:
        if method == request.method:
            return handler, name
    raise Problem(405, "method_not_allowed", "this path does not know that method")


def _found(row: dict[str, Any] | None) -> Answer:
    if row is None:
        raise not_found()
    return reply(row)


def _ledger(site: Site, request: Request) -> list[dict[str, Any]]:
    columns = {"key": "key", "order": "order_id", "kind": "kind"}
    wanted = {columns[name]: value for name, value in request.query.items() if name in columns}
    where = " AND ".join(f"{column} = ?" for column in wanted) or "TRUE"
    return site.store.rows(f"SELECT * FROM ledger WHERE {where} ORDER BY n", *wanted.values())


def _count(rows: list[dict[str, Any]], field: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row[field]] = counts.get(row[field], 0) + 1
    return counts
