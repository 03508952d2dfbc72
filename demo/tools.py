"""Tools against the order service: what each reply proves is decided here and nowhere else.

For an effect, only an answer that documents "nothing was done" may say so; whatever leaves it open is `unknown`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from demo.client import Lost, NotSent, Reply, call
from runs.engine.toolspec import Effect, Risk
from runs.tools.base import Context, Kind, Outcome, Proof, Tool, tool

DAY = 86_400
KEY_REUSE = "idempotency_key_reuse"
CUSTOMER = re.compile(r"C-[0-9]{1,9}")

OrderId = Annotated[str, Field(pattern=r"^O-[0-9]{1,9}$", description="Order number such as O-1042")]
ShipmentId = Annotated[str, Field(pattern=r"^L-[0-9]{1,9}$", description="Shipment number such as L-88")]
Sku = Annotated[str, Field(pattern=r"^[A-Z0-9-]{1,30}$", description="Product number such as LAMP-01")]
Amount = Annotated[str, Field(pattern=r"^\d{1,7}\.\d{2}$", description="Decimal amount such as 80.00")]
Reason = Annotated[str, Field(min_length=1, max_length=1000, description="Why, in one or two sentences")]
Day = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$", description="Day such as 2026-12-04")]
Text = Annotated[str, Field(min_length=1, max_length=2000, description="The message as the customer will read it")]


def lookup_stock(ctx: Context, *, sku: Sku) -> Outcome:
    """Say how many pieces of a product lie in which warehouse. An empty list means: known, but out of stock."""
    return _read(ctx, "stock", f"/stock/{sku}", "sku", sku, needs_customer=False)


def get_order(ctx: Context, *, order_id: OrderId) -> Outcome:
    """Read an order of the customer: items, total, what was refunded, what can still be refunded, its shipments."""
    return _read(ctx, "order", f"/orders/{order_id}", "id", order_id)


def get_shipment(ctx: Context, *, shipment_id: ShipmentId) -> Outcome:
    """Read where a shipment is and what its carrier noted."""
    return _read(ctx, "shipment", f"/shipments/{shipment_id}", "id", shipment_id)


def open_investigation(ctx: Context, *, order_id: OrderId, reason: Reason) -> Outcome:
    """Ask the carrier to find out what became of an order that was lost or damaged on its way."""
    return _effect(ctx, "investigation", "/investigations", {"order_id": order_id, "reason": reason}, key=ctx.key)


def refund_order(
    ctx: Context, *, order_id: OrderId, amount: Amount, currency: Literal["EUR"], reason: Reason
) -> Outcome:
    """Pay back a part of an order's total to the customer. At most what can still be refunded; cannot be taken back."""
    body = {"order_id": order_id, "amount": amount, "currency": currency, "reason": reason}
    return _effect(ctx, "refund", "/refunds", body, key=ctx.key, also_changed=(f"order:{order_id}",))


def send_message(ctx: Context, *, order_id: OrderId, text: Text) -> Outcome:
    """Send a text about an order to the customer of this conversation. It cannot be called back."""
    return _effect(ctx, "message", "/messages", {"order_id": order_id, "text": text})


def book_pickup(ctx: Context, *, order_id: OrderId, day: Day) -> Outcome:
    """Book a carrier that fetches the goods of an order back on a day. Each booking costs money."""
    body = {"order_id": order_id, "day": day, "reference": ctx.key}
    return _effect(ctx, "pickup", "/pickups", body)


def find_pickup(ctx: Context, *, order_id: OrderId, day: Day) -> Outcome:
    """Look whether a pickup with our mark was booked: the service keeps no keys, but it keeps our reference."""
    if (customer := _customer(ctx)) is None:
        return _no_customer("pickups")
    try:
        reply = call(ctx, "GET", f"/pickups?reference={ctx.key}", customer=customer)
    except (NotSent, Lost) as error:
        return Outcome(kind=Kind.UNKNOWN, source="pickups", status=str(error))
    found = reply.body.get("pickups")
    if reply.status != 200 or not isinstance(found, list):
        return Outcome(kind=Kind.UNKNOWN, source="pickups", status="unreadable_reply")
    if not found:
        return Outcome(kind=Kind.DECLINED, source="pickups", status="not_found")
    return _booked("pickup", found[0], order_id) or Outcome(kind=Kind.UNKNOWN, status="unreadable_reply")


def write_delivery_note(ctx: Context, *, order_id: OrderId, text: Text) -> Outcome:
    """Set the note that the driver reads for an order. The same note again changes nothing."""
    return _effect(ctx, "delivery_note", "/delivery-notes", {"order_id": order_id, "text": text}, method="PUT")


TOOLS: tuple[Tool, ...] = (
    tool(
        lookup_stock,
        headline="Look up how many pieces of product {sku} are in stock",
        effect=Effect.READ,
        risk=Risk.LOW,
        deadline=10.0,
        objects=("stock:{sku}",),
    ),
    tool(
        get_order,
        headline="Read order {order_id} of this customer",
        effect=Effect.READ,
        risk=Risk.LOW,
        deadline=10.0,
        objects=("order:{order_id}",),
    ),
    tool(
        get_shipment,
        headline="Read where shipment {shipment_id} is",
        effect=Effect.READ,
        risk=Risk.LOW,
        deadline=10.0,
        objects=("shipment:{shipment_id}",),
    ),
    tool(
        open_investigation,
        headline="Ask the carrier to investigate the delivery of order {order_id}",
        effect=Effect.KEYED,
        retention=DAY,
        sensitive=("order_id",),
        objects=("order:{order_id}",),
    ),
    tool(
        refund_order,
        headline="Refund €{amount} on order {order_id} to the customer who placed it",
        effect=Effect.KEYED,
        risk=Risk.HIGH,
        retention=DAY,
        sensitive=("order_id", "amount"),
        objects=("order:{order_id}",),
        card={
            "kind": "money",
            "amount": "amount",
            "currency": "currency",
            "to": "fact:customer",
            "consequence": "The money leaves at once and cannot be called back.",
        },
    ),
    tool(
        send_message,
        headline="Send a message about order {order_id} to the customer who placed it",
        sensitive=("order_id",),
        objects=("order:{order_id}",),
        card={
            "kind": "message",
            "text": "text",
            "to": "fact:customer",
            "consequence": "The customer reads it as it stands here; it cannot be called back.",
        },
    ),
    tool(
        book_pickup,
        look_up=find_pickup,
        headline="Book a pickup of order {order_id} at its customer on {day}",
        effect=Effect.LOOKUP,
        deadline=10.0,
        sensitive=("order_id",),
        objects=("order:{order_id}",),
        card={"consequence": "A carrier comes on that day, and the booking costs money."},
    ),
    tool(
        write_delivery_note,
        headline="Set the driver's note of order {order_id}",
        effect=Effect.REPEATABLE,
        risk=Risk.LOW,
        deadline=10.0,
        objects=("order:{order_id}",),
        card={"kind": "message", "text": "text", "consequence": "The driver reads it; a later note replaces it."},
    ),
)


def _customer(ctx: Context) -> str | None:
    value = ctx.facts.get("customer")
    return value if isinstance(value, str) and CUSTOMER.fullmatch(value) else None


def _no_customer(source: str) -> Outcome:
    text = "The host gave this run no customer, so nothing was sent."
    return Outcome(
        kind=Kind.FATAL, source=source, status="no_customer", proof=Proof.PRE_SEND, changed=(), data={"message": text}
    )


def _read(ctx: Context, form: str, path: str, id_field: str, name: str, *, needs_customer: bool = True) -> Outcome:
    source = form if form == "stock" else f"{form}s"
    customer = _customer(ctx) if needs_customer else ""
    if customer is None:
        return _no_customer(source)
    try:
        reply = call(ctx, "GET", path, customer=customer)
    except NotSent as error:
        return Outcome(kind=Kind.RETRYABLE, source=source, status=str(error), proof=Proof.PRE_SEND)
    except Lost as error:
        return Outcome(kind=Kind.RETRYABLE, source=source, status=str(error))
    if reply.status != 200:
        # Nothing can be in doubt after a read, so an answer that we do not know may be asked for again.
        return _refusal(reply, source) or Outcome(kind=Kind.RETRYABLE, source=source, status="unreadable_reply")
    version = reply.body.get("version")
    if reply.body.get(id_field) != name or not isinstance(version, int):
        return Outcome(kind=Kind.RETRYABLE, source=source, status="unreadable_reply")
    evidence = (f"{form}:{name}:v{version}",)
    return Outcome(kind=Kind.OK, source=source, version=str(version), evidence=evidence, data=reply.body)


def _effect(
    ctx: Context,
    form: str,
    path: str,
    body: dict[str, str],
    *,
    method: str = "POST",
    key: str = "",
    also_changed: tuple[str, ...] = (),
) -> Outcome:
    """Send `body`. `also_changed` are objects that change beside the new one: the order of a refund, but not of a
    message, or every message would make what was read of the order look old."""
    source = f"{form}s"
    if (customer := _customer(ctx)) is None:
        return _no_customer(source)
    try:
        reply = call(ctx, method, path, customer=customer, key=key, body=body)
    except NotSent as error:
        return Outcome(kind=Kind.RETRYABLE, source=source, status=str(error), proof=Proof.PRE_SEND, changed=())
    except Lost as error:
        return Outcome(kind=Kind.UNKNOWN, source=source, status=str(error), changed=also_changed)
    if reply.status not in (200, 201):
        status = "key_reused" if reply.code == KEY_REUSE else reply.code or "unreadable_reply"
        unknown = Outcome(kind=Kind.UNKNOWN, source=source, status=status, changed=also_changed)
        return _refusal(reply, source) or unknown
    unreadable = Outcome(kind=Kind.UNKNOWN, source=source, status="unreadable_reply", changed=also_changed)
    return _booked(form, reply.body, body["order_id"], also_changed) or unreadable


def _booked(form: str, row: Any, order_id: str, also_changed: tuple[str, ...] = ()) -> Outcome | None:
    """The outcome of an effect that the service shows; None where it is not a row about this order."""
    name, version = (row.get("id"), row.get("version")) if isinstance(row, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(version, int) or row.get("order_id") != order_id:
        return None
    return Outcome(
        kind=Kind.OK,
        source=f"{form}s",
        version=str(version),
        evidence=(f"{form}:{name}:v{version}",),
        effect_ref=name,
        changed=(f"{form}:{name}", *also_changed),
        data=row,
    )


def _refusal(reply: Reply, source: str) -> Outcome | None:
    """What a documented "no" says; None where the reply proves nothing.

    A 422 that our key was used for another request is none: the key names one call of one run, so a request of ours
    has begun under it with other bytes, and what became of that one is open. A 409 says that the first still runs.
    """
    error: Any = reply.body.get("error")
    if reply.status == 429:
        kind, proof, status = Kind.RETRYABLE, Proof.REMOTE_REFUSED, "too_many_requests"
    elif reply.code and reply.code != KEY_REUSE and reply.status in (404, 422):
        kind, proof, status = Kind.DECLINED, Proof.REMOTE_REFUSED, reply.code
    elif reply.code and reply.status in (400, 401, 403, 405, 411, 413):
        kind, proof, status = Kind.FATAL, Proof.REMOTE_REFUSED, reply.code
    else:
        return None
    after = reply.retry_after
    return Outcome(kind=kind, source=source, status=status, proof=proof, data=error, retry_after=after, changed=())
