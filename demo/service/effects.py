"""What the service does to its world: refunds, investigations, messages, pickups, delivery notes.

Each real effect is a row of the ledger. Its key is what the caller can name it by: an idempotency key, the reference
of a pickup, or nothing.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from demo.service import money
from demo.service.keys import Keys
from demo.service.store import Store
from demo.service.web import Answer, Problem, Request, not_found, reply

LONGEST_TEXT = 4000


def refund(keys: Keys, request: Request, pause: Callable[[], None]) -> Answer:
    """Give back part of an order's total; the order gets a new version, because its refundable rest has changed.

    More than the rest is a business answer and not a failed validation: it was judged on the order as it stood, so it
    is kept under the key like any other answer.
    """
    body = request.json()
    order_id, reason = _text(body, "order_id"), _text(body, "reason")
    if body.get("currency") != "EUR":
        raise Problem(422, "currency_not_supported", "orders are in EUR")
    amount = money.cents(_text(body, "amount"))
    if not amount:
        raise Problem(422, "bad_amount", "amount must be a positive decimal such as 80.00")

    def perform(db: sqlite3.Connection) -> Answer:
        order = _order(db, request, order_id)
        rest = order["total"] - order["refunded"]
        if amount > rest:
            text = f"only {money.text(rest)} EUR of this order can still be refunded"
            raise Problem(422, "exceeds_refundable", text, refundable=money.text(rest))
        db.execute("UPDATE orders SET refunded = refunded + ?, version = version + 1 WHERE id = ?", (amount, order_id))
        sql = "INSERT INTO refunds (order_id, amount, reason, version) VALUES (?, ?, ?, 1)"
        name = f"R-{db.execute(sql, (order_id, amount, reason)).lastrowid}"
        _record(db, request, "refund", name, order_id)
        row = {"id": name, "order_id": order_id, "amount": money.text(amount), "currency": "EUR", "reason": reason}
        return reply({**row, "refundable": money.text(rest - amount), "version": 1}, status=201)

    return keys.once(request, check=lambda db: _exists(db, request, order_id), perform=perform, pause=pause)


def investigation(keys: Keys, request: Request, pause: Callable[[], None]) -> Answer:
    """Ask the carrier what became of an order."""
    body = request.json()
    order_id, reason = _text(body, "order_id"), _text(body, "reason")

    def perform(db: sqlite3.Connection) -> Answer:
        sql = "INSERT INTO investigations (order_id, reason, status, version) VALUES (?, ?, 'open', 1)"
        name = f"I-{db.execute(sql, (order_id, reason)).lastrowid}"
        _record(db, request, "investigation", name, order_id)
        row = {"id": name, "order_id": order_id, "reason": reason, "status": "open", "version": 1}
        return reply(row, status=201)

    return keys.once(request, check=lambda db: _exists(db, request, order_id), perform=perform, pause=pause)


def message(store: Store, request: Request, pause: Callable[[], None]) -> Answer:
    """Send text to the customer. No key: each request is one more message, as with most mail gateways."""
    body = request.json()
    order_id, text = _text(body, "order_id"), _text(body, "text")
    with _unkeyed(store, request, order_id, pause) as db:
        sql = "INSERT INTO messages (order_id, text, version) VALUES (?, ?, 1)"
        name = f"M-{db.execute(sql, (order_id, text)).lastrowid}"
        _record(db, request, "message", name, order_id)
    row = {"id": name, "order_id": order_id, "to": request.headers["x-customer"], "text": text, "version": 1}
    return reply(row, status=201)


def pickup(store: Store, request: Request, pause: Callable[[], None]) -> Answer:
    """Book a carrier to fetch something back. Whoever books twice gets two; the caller's reference finds them again."""
    body = request.json()
    order_id, day, reference = (_text(body, name) for name in ("order_id", "day", "reference"))
    with _unkeyed(store, request, order_id, pause) as db:
        sql = "INSERT INTO pickups (order_id, day, reference, version) VALUES (?, ?, ?, 1)"
        name = f"P-{db.execute(sql, (order_id, day, reference)).lastrowid}"
        _record(db, request, "pickup", name, order_id, reference)
    return reply({"id": name, "order_id": order_id, "day": day, "reference": reference, "version": 1}, status=201)


def delivery_note(store: Store, request: Request, pause: Callable[[], None]) -> Answer:
    """Set what the driver reads for an order. The same text again changes nothing."""
    body = request.json()
    order_id, text = _text(body, "order_id"), _text(body, "text")
    with _unkeyed(store, request, order_id, pause) as db:
        sql = "SELECT text, version FROM delivery_notes WHERE order_id = ?"
        old = db.execute(sql, (order_id,)).fetchone()
        version = old["version"] if old and old["text"] == text else (old["version"] if old else 0) + 1
        db.execute("INSERT OR REPLACE INTO delivery_notes VALUES (?, ?, ?)", (order_id, text, version))
        _record(db, request, "delivery_note", f"N-{order_id[2:]}", order_id)
    return reply({"id": f"N-{order_id[2:]}", "order_id": order_id, "text": text, "version": version})


@contextmanager
def _unkeyed(store: Store, request: Request, order_id: str, pause: Callable[[], None]) -> Iterator[sqlite3.Connection]:
    """The transaction of an effect without a key: the order is the caller's, and `pause` stands before the effect."""
    with store.transaction() as db:
        _exists(db, request, order_id)
    pause()
    with store.transaction() as db:
        yield db


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TEXT:
        raise Problem(400, "bad_request", f"{name} must be a text of 1 to {LONGEST_TEXT} characters")
    return value


def _order(db: sqlite3.Connection, request: Request, order_id: str) -> sqlite3.Row:
    values = (order_id, request.headers["x-customer"])
    row: sqlite3.Row | None = db.execute("SELECT * FROM orders WHERE id = ? AND customer = ?", values).fetchone()
    if row is None:
        raise not_found()
    return row


def _exists(db: sqlite3.Connection, request: Request, order_id: str) -> None:
    _order(db, request, order_id)


def _record(db: sqlite3.Connection, request: Request, kind: str, name: str, order_id: str, reference: str = "") -> None:
    keyed = kind in ("refund", "investigation")
    key = request.headers.get("idempotency-key", "") if keyed else reference
    row = (time.time_ns() // 1000, kind, key, name, order_id, request.digest(), request.id)
    sql = "INSERT INTO ledger (at, kind, key, object, order_id, body_digest, request) VALUES (?, ?, ?, ?, ?, ?, ?)"
    db.execute(sql, row)
