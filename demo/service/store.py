"""The service's own database: one SQLite file, one connection, one lock.

One lock makes every transaction serial, which is the simplest thing that is certainly right for a demo; durability is
real (`synchronous=FULL`), because the stories kill this process and then count effects.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.service.seed import seed

SCHEMA = """
CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL REFERENCES customers, status TEXT NOT NULL,
    placed TEXT NOT NULL, items TEXT NOT NULL, total INTEGER NOT NULL, refunded INTEGER NOT NULL,
    version INTEGER NOT NULL, CHECK (refunded BETWEEN 0 AND total));
CREATE TABLE shipments (id TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, status TEXT NOT NULL,
    carrier TEXT NOT NULL, note TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE stock (sku TEXT NOT NULL REFERENCES products, warehouse TEXT NOT NULL, quantity INTEGER NOT NULL,
    PRIMARY KEY (sku, warehouse));
CREATE TABLE investigations (n INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL REFERENCES orders,
    reason TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE refunds (n INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL REFERENCES orders,
    amount INTEGER NOT NULL CHECK (amount > 0), reason TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE messages (n INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL REFERENCES orders,
    text TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE pickups (n INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL REFERENCES orders,
    day TEXT NOT NULL, reference TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE delivery_notes (order_id TEXT PRIMARY KEY REFERENCES orders, text TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE keys (customer TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
    status INTEGER, body BLOB, PRIMARY KEY (customer, key));
CREATE TABLE ledger (n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
    object TEXT NOT NULL, order_id TEXT NOT NULL, body_digest TEXT NOT NULL, request TEXT NOT NULL);
"""
TABLES = (
    "ledger",
    "keys",
    "messages",
    "pickups",
    "delivery_notes",
    "refunds",
    "investigations",
    "stock",
    "products",
    "shipments",
    "orders",
    "customers",
)


class Store:
    """The open database of one folder."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
            self._db.execute(f"PRAGMA {pragma}")
        with self.transaction() as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'ledger'").fetchone():
                for statement in SCHEMA.split(";\n"):
                    db.execute(statement)
                seed(db)
            # An effect and its answer share a transaction, so a key without an answer belongs to a request that died
            # with the process before any effect: nothing is lost by forgetting it.
            db.execute("DELETE FROM keys WHERE status IS NULL")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; the commit is on disk when the block has ended."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of a query."""
        with self._lock:
            return [dict(row) for row in self._db.execute(sql, values)]

    def row(self, sql: str, *values: Any) -> dict[str, Any] | None:
        """The first row of a query."""
        return next(iter(self.rows(sql, *values)), None)

    def start_over(self) -> None:
        """Back to the first day: ledger, keys and effects are gone."""
        with self.transaction() as db:
            for table in TABLES:
                db.execute(f"DELETE FROM {table}")
            db.execute("DELETE FROM sqlite_sequence")
            seed(db)

    def close(self) -> None:
        """Wait for the transaction in hand, then close."""
        with self._lock:
            self._db.close()
