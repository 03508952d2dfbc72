"""The scripted models of the demo's agents. They meet what a real model meets: refusals, declines, edits, doubts."""

import re
from collections.abc import Generator

from demo.plans import Plan, Reads, Says, Script, Seen, Tale, Turn, ask, call, finish, give_up, say, script

AMOUNT = re.compile(r"\b\d{1,7}\.\d{2}\b")
READS: Reads = {
    "lookup_stock": lambda tale: {"sku": tale.inputs.get("sku", "")},
    "get_order": lambda tale: {"order_id": tale.inputs.get("order_id", "")},
    "get_shipment": lambda tale: {"shipment_id": _shipment(tale)},
}


def stock_question(tale: Tale) -> Plan:
    """Look, then say what is there."""
    sku = tale.inputs.get("sku", "")
    seen = yield from ask(f"I look up {sku}.", "lookup_stock", sku=sku)
    if not seen.ok:
        yield from give_up(f"The stock of {sku} could not be read: {seen.why}.")
        return
    lines = seen.data.get("stock", [])
    places = ", ".join(f"{line['quantity']} in {line['warehouse']}" for line in lines)
    total = sum(line["quantity"] for line in lines)
    answer = (
        f"{seen.data.get('name', sku)} ({sku}): {total} in stock: {places}." if lines else f"{sku} is out of stock."
    )
    yield from finish(tale, answer, seen.evidence, _only("lookup_stock"))


def order_investigation(tale: Tale) -> Plan:
    """Read order and shipment; ask the carrier where something went wrong; say what was found."""
    order = yield from _order(tale)
    if not order.ok:
        yield from give_up(f"The order could not be read: {order.why}.")
        return
    if not (shipment_id := _shipment(tale)):
        yield from give_up("The order has not been shipped yet, so there is no shipment to look into.")
        return
    shipment = yield from ask("Now its shipment.", "get_shipment", shipment_id=shipment_id)
    if not shipment.ok:
        yield from give_up(f"Shipment {shipment_id} could not be read: {shipment.why}.")
        return
    note, status = shipment.data.get("note", ""), shipment.data.get("status", "")
    answer = f"Shipment {shipment_id} of order {order.data.get('id')} is {str(status).replace('_', ' ')}. {note}."
    evidence = order.evidence + shipment.evidence
    if status == "lost" or "damaged" in str(note):
        more, proof = yield from _investigate(tale, f"{note}.")
        answer, evidence = f"{answer} {more}", evidence + proof
    yield from finish(tale, answer, evidence, _only("get_order", "get_shipment"))


def refund(tale: Tale) -> Plan:
    """Read the order, ask for the refund, say what was really paid. Never asks again once money has moved."""
    if tale.done_before("refund_order") and not tale.last_ok("refund_order"):
        order = yield from _order(tale)
        back = order.data.get("refunded", "?")
        text = f"The refund was made earlier in this run; {back} EUR of the order are paid back."
        yield from finish(tale, text, order.evidence if order.ok else [], _only("get_order"))
        return
    paid = tale.last_ok("refund_order")
    if paid is None:
        order = yield from _order(tale)
        if not order.ok:
            yield from give_up(f"The order could not be read: {order.why}.")
            return
        paid = yield from _pay(tale, tale.inputs.get("amount") or str(order.data.get("refundable", "")))
        if not paid.ok:
            yield from give_up(_not_paid(paid))
            return
    amount = paid.data.get("amount") or paid.arguments.get("amount")
    changed = " A person changed the amount before." if paid.result.get("edited_by_person") else ""
    answer = f"{amount} EUR of order {paid.arguments.get('order_id')} were paid back.{changed}"
    yield from finish(tale, answer, paid.evidence, _only("get_order"))


def messenger(tale: Tale) -> Plan:
    """Send the text, once."""
    order_id, text = tale.inputs.get("order_id", ""), tale.inputs.get("text", "")
    sent = tale.last_ok("send_message") or (
        yield from _once("I send the message.", "send_message", order_id=order_id, text=text)
    )
    if not sent.ok:
        yield from give_up(f"The message is not known to be sent ({sent.outcome}): {sent.why}.")
        return
    yield from finish(tale, f"The customer was sent: {sent.arguments.get('text', text)}", sent.evidence, {})


def pickup(tale: Tale, tool: str = "book_pickup") -> Plan:
    """Leave the note if there is one, book the pickup, once."""
    order_id, day = tale.inputs.get("order_id", ""), tale.inputs.get("day", "")
    booked = tale.last_ok(tool)
    if booked is None:
        if note := tale.inputs.get("note"):
            yield from ask("The driver should read this.", "write_delivery_note", order_id=order_id, text=note)
        booked = yield from _once("I book the pickup.", tool, order_id=order_id, day=day)
    if not booked.ok:
        yield from give_up(f"The pickup is not known to be booked ({booked.outcome}): {booked.why}.")
        return
    answer = f"Pickup {booked.data.get('id', '')} of order {order_id} is booked for {booked.arguments.get('day', day)}."
    yield from finish(tale, answer, booked.evidence, {})


SCRIPTS: dict[str, Script] = {
    "stock-question": script(stock_question),
    "order-investigation": script(order_investigation),
    "refund": script(refund),
    "lossy-refund": script(refund),
    "messenger": script(messenger),
    "pickup": script(pickup),
}


def _only(*tools: str) -> Reads:
    return {tool: READS[tool] for tool in tools}


def _order(tale: Tale) -> Generator[Says, Turn, Seen]:
    order_id = tale.inputs.get("order_id", "")
    seen = yield from ask(f"I read order {order_id} first.", "get_order", order_id=order_id)
    return seen


def _once(text: str, name: str, /, **arguments: str) -> Generator[Says, Turn, Seen]:
    """An effect is asked for once: whether it may be tried again is the host's to say, not the model's."""
    turn = yield say(text, call(name, **arguments))
    return turn.seen[0] if turn.seen else Seen(name, arguments, {})


def _shipment(tale: Tale) -> str:
    order = tale.last_ok("get_order")
    return str(next(iter(order.data.get("shipments", [])), "")) if order else ""


def _investigate(tale: Tale, reason: str) -> Generator[Says, Turn, tuple[str, list[str]]]:
    order_id = tale.inputs.get("order_id", "")
    text = "The carrier should look into this."
    opened = tale.last_ok("open_investigation") or (
        yield from _once(text, "open_investigation", order_id=order_id, reason=reason)
    )
    if opened.ok:
        return f"Investigation {opened.data.get('id', '')} is open.", opened.evidence
    return f"No investigation is known to be open ({opened.outcome}: {opened.why}).", []


def _pay(tale: Tale, amount: str) -> Generator[Says, Turn, Seen]:
    """Ask for the refund. A person who refuses and names another amount is taken at their word, once."""
    reason = tale.inputs.get("reason") or "The customer asked for it and the order allows it."
    fields = {"order_id": tale.inputs.get("order_id", ""), "currency": "EUR", "reason": reason}
    paid = yield from _once(f"I ask to refund {amount} EUR.", "refund_order", amount=amount, **fields)
    other = AMOUNT.search(paid.why) if paid.outcome == "refused" else None
    if other and other[0] != amount:
        paid = yield from _once(f"A person named {other[0]} EUR instead.", "refund_order", amount=other[0], **fields)
    return paid


def _not_paid(paid: Seen) -> str:
    said = {
        "refused": f"A person refused the refund: {paid.why}.",
        "denied": f"A rule does not allow the refund: {paid.why}.",
        "declined": f"The order service declined the refund: {paid.why}.",
        "unknown": "It is not known whether the refund was made; a person has to look.",
    }
    return said.get(paid.outcome, f"The refund was not made ({paid.outcome}): {paid.why}.")
