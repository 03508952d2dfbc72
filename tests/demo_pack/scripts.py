"""Scripted models for stories: three verdicts in one turn, and each way in which an answer can be wrong."""

import json
import random
from collections.abc import Callable

from demo.plans import Block, Message, Plan, Says, Script, Tale, ask, call, finish, give_up, say, script
from demo.scripts import READS, pickup
from tests.demo_pack.tools import CALLS

# Answers of which the host uses nothing: it asks the same turn again with the same messages. The provider counts them.
UNSEEN = ("truncated", "duplicate_id", "refusal", "too_many_calls", "unparsable")
# Answers that enter the conversation: the script sees what came of them and goes on.
SEEN = ("unknown_tool", "invalid_arguments")


def _order_id(tale: Tale) -> str:
    return tale.inputs.get("order_id", "O-1042")


def _refund(tale: Tale, amount: str) -> Block:
    return call("refund_order", order_id=_order_id(tale), amount=amount, currency="EUR", reason="The lamp came broken.")


def three_calls(tale: Tale) -> Plan:
    """One turn with a call that is allowed, one that is asked and one that is denied; then the end.

    The first reads `other_id`, if it is given: calls on one order would wait for each other.
    """
    calls = (
        call("get_order", order_id=tale.inputs.get("other_id") or _order_id(tale)),
        _refund(tale, "80.00"),
        _refund(tale, "500.01"),
    )
    turn = yield say("Three things at once.", *calls)
    done = [s for s in turn.seen if s.ok and s.tool == "refund_order"]
    amounts = ", ".join(str(s.data.get("amount")) for s in done) or "nothing"
    order = yield from ask("I look at the order as it is now.", "get_order", order_id=_order_id(tale))
    evidence = [e for s in [*done, order] if s.ok for e in s.evidence]
    outcomes = ", ".join(s.outcome for s in turn.seen)
    yield from finish(
        tale, f"Paid back: {amounts}. The calls came to: {outcomes}.", evidence, {"get_order": READS["get_order"]}
    )


def edit_watch(tale: Tale) -> Plan:
    """Ask for 80.00 and quote what the result says was really paid."""
    turn = yield say("I ask for 80.00 EUR.", _refund(tale, "80.00"))
    paid = turn.seen[0]
    if not paid.ok:
        yield from give_up(f"Not paid ({paid.outcome}): {paid.why}.")
        return
    edited = "A person changed it." if paid.result.get("edited_by_person") else "Nobody changed it."
    yield from finish(tale, f"Really refunded: {paid.data.get('amount')} EUR. {edited}", paid.evidence, {})


def asker(tale: Tale) -> Plan:
    """Ask a person for what only a person knows, then finish with a reading."""
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["black", "white"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    turn = yield say(
        "I need a person.", call("ask_user", question="Which colour does the customer want?", schema=schema)
    )
    told = json.dumps(turn.seen[0].result)
    order = yield from ask("Now the order.", "get_order", order_id=_order_id(tale))
    # However the host words it, the answer stands somewhere in the result.
    colour = next((word for word in ("black", "white") if word in told), "an unknown colour")
    yield from finish(tale, f"The customer wants {colour}.", order.evidence if order.ok else [], READS)


def quitter(tale: Tale) -> Plan:
    """Give up at once."""
    yield from give_up("I have no tool for this.")


def text_end(tale: Tale) -> Plan:
    """Claim to be done, without evidence, whatever the host says."""
    while True:
        yield say("All done, trust me.")


def repeater(tale: Tale) -> Plan:
    """Read the same thing for ever."""
    while True:
        yield say("Once more.", call("get_order", order_id=_order_id(tale)))


def _proper(tale: Tale) -> Plan:
    order = yield from ask("I read the order.", "get_order", order_id=_order_id(tale))
    if not order.ok:
        yield from give_up(f"The order could not be read: {order.why}.")
        return
    answer = f"Order {_order_id(tale)} is {order.data.get('status')}."
    yield from finish(tale, answer, order.evidence, {"get_order": READS["get_order"]})


def _seen_once(kind: str) -> Callable[[Tale], Plan]:
    wrong: dict[str, Says] = {
        "unknown_tool": say("I use a tool that nobody has.", call("launch_rocket", target="moon")),
        "invalid_arguments": say("I invent an argument.", call("get_order", order_id="O-1042", admin=True)),
    }

    def plan(tale: Tale) -> Plan:
        yield wrong[kind]
        yield from _proper(tale)

    return plan


def _unseen_once(kind: str) -> Script:
    proper = script(_proper)

    def answer(messages: list[Message]) -> Says:
        said = proper(messages)
        return said if len(messages) > 1 else {"misbehave": kind, "times": 1, "then": said}

    return answer


def _empty_once(messages: list[Message]) -> Says:
    """An end without a word. It leaves no block behind, only the host's answer to it."""
    proper = script(_proper)(messages)
    told = any("Ending with text alone" in b.get("text", "") for m in messages for b in m["content"])
    return proper if told or len(messages) > 1 else {"misbehave": "empty_end"}


def two_effects(tale: Tale) -> Plan:
    """A pickup and a message in one turn, so that one can wait while the other is in doubt; then the end."""
    order = _order_id(tale)
    text = f"It is fetched back. {len(tale.turns)}"
    pickup, message = (
        call("book_pickup_soon", order_id=order, day="2026-12-04"),
        call("send_message", order_id=order, text=text),
    )
    yield say("Both.", pickup, message)
    yield from _proper(tale)


def medley(tale: Tale) -> Plan:
    """A few turns of up to three calls of every effect class, chosen by the input `seed`; then an end, or none.

    A pure function of the messages, as all scripts are: turn n of seed s is always the same.
    """
    seed, order = tale.inputs.get("seed", "0"), _order_id(tale)
    for turn in range(1, 5):
        dice = random.Random(f"{seed}:{turn}")
        mark = f"{seed}:{turn}:{len(tale.turns)}"  # unlike any other, also when a person resumed
        menu = {
            "read": call("get_order", order_id=order),
            "stock": call("lookup_stock", sku="LAMP-01"),
            "note": call("write_delivery_note", order_id=order, text=f"Ring twice. {mark}"),
            "refund": call("refund_order", order_id=order, amount="1.00", currency="EUR", reason=mark),
            "above": call("refund_order", order_id=order, amount="500.01", currency="EUR", reason=mark),
            "investigate": call("open_investigation", order_id=order, reason=mark),
            "pickup": call("book_pickup_soon", order_id=order, day="2026-12-04"),
            "message": call("send_message", order_id=order, text=mark),
            "invalid": call("get_order", order_id="nowhere"),
            "rocket": call("launch_rocket", target="moon"),
            "ask": call("ask_user", question="Go on?", schema={"type": "string"}),
        }
        weights = [3, 2, 3, 5, 1, 3, 5, 5, 1, 1, 1]
        chosen = dict.fromkeys(dice.choices(list(menu), weights, k=dice.choice((1, 1, 2, 3))))
        yield say(f"Turn {mark}.", *(menu[name] for name in chosen))
    if random.Random(seed).random() < 0.15:
        yield from give_up("That is all that I can do.")
    yield from _proper(tale)


def workshop(tale: Tale) -> Plan:
    """One turn with a changed file and a command."""
    yield say("The rate is rounded too early.", *(call(name, **arguments) for name, arguments in CALLS.items()))
    yield from give_up("That is all that I can do.")


SCRIPTS: dict[str, Script] = {
    "three-calls": script(three_calls),
    "edit-watch": script(edit_watch),
    "asker": script(asker),
    "quitter": script(quitter),
    "medley": script(medley),
    "two-effects": script(two_effects),
    "text-end": script(text_end),
    "repeater": script(repeater),
    "workshop": script(workshop),
    "pickup-soon": script(lambda tale: pickup(tale, "book_pickup_soon")),
    **{f"misbehave-{kind}": _unseen_once(kind) for kind in UNSEEN},
    **{f"misbehave-{kind}": script(_seen_once(kind)) for kind in SEEN},
    "misbehave-empty_end": _empty_once,
}
