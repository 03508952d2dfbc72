"""The least that could keep two commits a turn: a head moved by compare-and-set and one fact of 1 KB, raw."""

import time

from django.db import connection, transaction

from bench.pack import TEXT

MAKE = (
    "CREATE TABLE bench_head (id int PRIMARY KEY, seq bigint NOT NULL)",
    "CREATE TABLE bench_fact (seq bigint PRIMARY KEY, body text NOT NULL)",
    "INSERT INTO bench_head VALUES (1, 0)",
)
MOVE = "UPDATE bench_head SET seq = seq + 1 WHERE id = 1 AND seq = %s"
KEEP = "INSERT INTO bench_fact"


def make() -> None:
    """The two tables."""
    with connection.cursor() as cursor:
        for statement in MAKE:
            cursor.execute(statement)


def seconds(turns: int) -> float:
    """What that many turns take, two commits each."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM bench_head")
        first = cursor.fetchone()[0]
        began = time.perf_counter()
        for seq in range(first, first + 2 * turns):
            if connection.vendor == "postgresql":
                cursor.execute(f"WITH u AS ({MOVE} RETURNING seq) {KEEP} SELECT seq, %s FROM u", [seq, TEXT])
            else:
                with transaction.atomic():
                    cursor.execute(MOVE, [seq])
                    cursor.execute(f"{KEEP} VALUES (%s, %s)", [seq + 1, TEXT])
        return time.perf_counter() - began
