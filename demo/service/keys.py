"""Idempotency keys as Stripe has them.

The answer is stored once execution began, also a 5xx; a request that failed its validation or met the first one still
running stores nothing; a key older than the retention is forgotten, and using it again is a new request.
"""

import logging
import sqlite3
import time
from collections.abc import Callable

from demo.service.store import Store
from demo.service.web import Answer, Problem, Request

log = logging.getLogger("demo.service")

Check = Callable[[sqlite3.Connection], None]
Perform = Callable[[sqlite3.Connection], Answer]


class Keys:
    """Runs a keyed request at most once per key within `retention` seconds."""

    def __init__(self, store: Store, retention: float) -> None:
        self._store = store
        self._retention = retention

    def once(self, request: Request, *, check: Check, perform: Perform, pause: Callable[[], None]) -> Answer:
        """Answer `request` from its key, or perform it. `pause` stands between the beginning and the effect."""
        name = (request.headers.get("x-customer", ""), _key(request))
        with self._store.transaction() as db:
            if known := self._known(db, name, request.digest()):
                return known
            check(db)
            db.execute(
                "INSERT INTO keys (customer, key, digest, at) VALUES (?, ?, ?, ?)",
                (*name, request.digest(), time.time()),
            )
        try:
            pause()
            with self._store.transaction() as db:
                answer = perform(db)
                _keep(db, name, answer)
                return answer
        except Problem as problem:
            answer = problem.answer()
        except Exception:
            log.exception("request %s failed", request.id)
            answer = Problem(500, "internal", "something broke").answer()
        with self._store.transaction() as db:
            _keep(db, name, answer)
        return answer

    def _known(self, db: sqlite3.Connection, name: tuple[str, str], digest: str) -> Answer | None:
        old = time.time() - self._retention
        db.execute("DELETE FROM keys WHERE customer = ? AND key = ? AND at < ? AND status IS NOT NULL", (*name, old))
        row = db.execute("SELECT digest, status, body FROM keys WHERE customer = ? AND key = ?", name).fetchone()
        if row is None:
            return None
        if row["digest"] != digest:
            raise Problem(422, "idempotency_key_reuse", "this key was used for another request")
        if row["status"] is None:
            raise Problem(409, "in_progress", "the first request with this key is still running")
        return Answer(status=row["status"], body=row["body"], headers=(("Idempotency-Replayed", "true"),))


def _key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "")
    if not 1 <= len(key) <= 255:
        raise Problem(400, "key_required", "Idempotency-Key must have 1 to 255 characters")
    return key


def _keep(db: sqlite3.Connection, name: tuple[str, str], answer: Answer) -> None:
    db.execute(
        "UPDATE keys SET status = ?, body = ? WHERE customer = ? AND key = ?", (answer.status, answer.body, *name)
    )
