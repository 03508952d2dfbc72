"""The same small world at every first start."""

import json
import sqlite3

from demo.service import money

CUSTOMERS = (("C-7", "Ada Lindqvist", "ada@example.com"), ("C-8", "Bruno Okafor", "bruno@example.com"))

# id, customer, status, placed, version, items (sku, name, quantity, cents each)
ORDERS = (
    (
        "O-1042",
        "C-7",
        "delivered",
        "2025-03-02",
        3,
        (("LAMP-01", "Desk lamp", 2, 4950), ("CHAIR-02", "Office chair", 1, 15000)),
    ),
    ("O-1043", "C-7", "shipped", "2025-03-04", 2, (("RADIO-04", "Kitchen radio", 1, 12990),)),
    ("O-1044", "C-7", "delivered", "2025-03-05", 2, (("CABLE-05", "Power cable", 2, 995),)),
    ("O-1045", "C-7", "shipped", "2025-03-06", 1, (("DESK-03", "Standing desk", 1, 64000),)),
    ("O-1046", "C-7", "paid", "2025-03-07", 1, (("LAMP-01", "Desk lamp", 1, 4950), ("BULB-06", "Bulb", 4, 650))),
    ("O-2001", "C-8", "delivered", "2025-03-03", 2, (("CHAIR-07", "Folding chair", 2, 4450),)),
)
# Trials with many runs at once need orders that do not share a refundable total.
BULK = tuple(
    (f"O-{n}", "C-7", "delivered", "2025-02-01", 1, (("LAMP-08", "Floor lamp", 1, 10000),)) for n in range(5001, 7001)
)

# id, order, status, carrier, note, version
SHIPMENTS = (
    ("L-88", "O-1042", "delivered", "Northbound Parcel", "Left with a neighbour; the parcel was marked as damaged", 2),
    ("L-89", "O-1043", "lost", "Northbound Parcel", "Not seen since the depot in Kassel on 2025-03-06", 4),
    ("L-90", "O-1044", "delivered", "Northbound Parcel", "Handed over at the door", 2),
    ("L-91", "O-1045", "in_transit", "Heavy Goods Line", "Due within two days", 1),
    ("L-92", "O-2001", "delivered", "Northbound Parcel", "Handed over at the door", 2),
)

PRODUCTS = (
    ("LAMP-01", "Desk lamp"),
    ("CHAIR-02", "Office chair"),
    ("DESK-03", "Standing desk"),
    ("RADIO-04", "Kitchen radio"),
)
# CHAIR-02 is a known product that lies in no warehouse: an empty answer, not a missing product.
STOCK = (("LAMP-01", "Hamburg", 7), ("LAMP-01", "Leipzig", 5), ("DESK-03", "Hamburg", 2), ("RADIO-04", "Leipzig", 31))


def seed(db: sqlite3.Connection) -> None:
    """Fill the empty tables."""
    db.executemany("INSERT INTO customers VALUES (?, ?, ?, 1)", CUSTOMERS)
    for order, customer, status, placed, version, items in ORDERS + BULK:
        lines = [{"sku": s, "name": n, "quantity": q, "price": money.text(c)} for s, n, q, c in items]
        total = sum(q * c for _, _, q, c in items)
        row = (order, customer, status, placed, json.dumps(lines), total, version)
        db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, 0, ?)", row)
    db.executemany("INSERT INTO shipments VALUES (?, ?, ?, ?, ?, ?)", SHIPMENTS)
    db.executemany("INSERT INTO products VALUES (?, ?, 1)", PRODUCTS)
    db.executemany("INSERT INTO stock VALUES (?, ?, ?)", STOCK)
