"""Scripted models against what a host may tell them."""

import json
from html import escape

import pytest

from demo import SCRIPTS
from tests.demo_pack import SCRIPTS as PACK

INPUTS = {"order_id": "O-1042", "amount": "80.00", "sku": "LAMP-01", "text": "Hello <you>", "reason": "It broke"}
ORDER = {
    "id": "O-1042",
    "refundable": "249.00",
    "refunded": "80.00",
    "status": "delivered",
    "shipments": ["L-88"],
    "version": 3,
}
LOST = {"id": "L-88", "status": "lost", "note": "Not seen", "order_id": "O-1042"}


def ok(evidence, **data):
    return {"outcome": "ok", "evidence": ["call:1.1", evidence], "data": data}


READING = {"get_order": [ok("order:O-1042:v3", **ORDER)], "get_shipment": [ok("shipment:L-88:v2", **LOST)]}
REFUSED = {"outcome": "refused", "by": "a person", "reason": "Not this one"}


def opening(**more):
    lines = [
        "Goal: do it",
        *(f'<input name="{k}" trust="trusted">{escape(v)}</input>' for k, v in (INPUTS | more).items()),
    ]
    lines.append('<fact name="customer" source="starter">C-7</fact>')
    return [{"role": "user", "content": [{"type": "text", "text": line} for line in lines]}]


def play(script, answers, messages=None, told=(), turns=12):
    """Be the host: answer each call from `answers` (the last one again and again) until the run ends."""
    messages, calls, told = messages or opening(), [], list(told)
    answers = {tool: list(results) for tool, results in answers.items()}
    for turn in range(turns):
        says = script(messages)
        assert says == script(json.loads(json.dumps(messages))), "a script must be pure"
        uses = [b | {"id": f"t{turn}.{n}"} for n, b in enumerate(says) if b["type"] == "tool_use"]
        calls += [(b["name"], b["input"]) for b in uses]
        waiting = [answers.get(b["name"], []) for b in uses]
        if (not uses and not told) or any(not w for w in waiting):
            return calls
        results = [(w.pop(0) if len(w) > 1 else w[0]) for w in waiting]
        if uses and uses[0]["name"] in ("finish", "give_up"):
            answers[uses[0]["name"]] = answers[uses[0]["name"]] if len(waiting[0]) > 1 else []
        blocks = [
            {"type": "tool_result", "tool_use_id": b["id"], "content": json.dumps(r), "is_error": False}
            for b, r in zip(uses, results, strict=True)
        ]
        blocks += [{"type": "text", "text": told.pop(0)}] if told else []
        text = [b for b in says if b["type"] == "text"]
        messages = [*messages, {"role": "assistant", "content": text + uses}, {"role": "user", "content": blocks}]
    return calls


def names(calls):
    return [name for name, _ in calls]


def test_refund_reads_asks_and_finishes_with_what_was_paid():
    calls = play(SCRIPTS["refund"], READING | {"refund_order": [ok("refund:R-1:v1", amount="80.00")]})
    assert names(calls) == ["get_order", "refund_order", "finish"]
    assert calls[-1][1]["evidence"] == ["refund:R-1:v1"] and "80.00 EUR" in calls[-1][1]["answer"]


def test_an_edited_refund_is_reported_as_it_was_paid():
    edited = ok("refund:R-1:v1", amount="50.00") | {
        "edited_by_person": True,
        "arguments": {"order_id": "O-1042", "amount": "50.00"},
    }
    for script in (SCRIPTS["refund"], PACK["edit-watch"]):
        answer = play(script, READING | {"refund_order": [edited]})[-1][1]["answer"]
        assert "50.00 EUR" in answer and "80.00" not in answer and "A person changed" in answer


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (REFUSED, "A person refused the refund: Not this one"),
        ({"outcome": "denied", "reason": "over the limit"}, "A rule does not allow the refund: over the limit"),
        ({"outcome": "declined", "status": "exceeds_refundable"}, "declined the refund: exceeds_refundable"),
        ({"outcome": "unknown"}, "not known whether"),
        ({"outcome": "expired", "reason": "nobody decided"}, "nobody decided"),
        ({"outcome": "not_executed"}, "was not made"),
        ({"outcome": "invalid", "reason": "amount: bad"}, "amount: bad"),
        ({"outcome": "fatal", "status": "no_customer"}, "no_customer"),
        ({}, "was not made"),
    ],
)
def test_a_refund_that_was_not_made_is_given_up_with_the_reason_and_never_asked_again(result, words):
    calls = play(SCRIPTS["refund"], READING | {"refund_order": [result]})
    assert names(calls) == ["get_order", "refund_order", "give_up"]
    assert words in calls[-1][1]["reason"]


def test_a_refusal_that_names_an_amount_is_followed_once():
    less = REFUSED | {"reason": "At most 30.00, please"}
    calls = play(SCRIPTS["refund"], READING | {"refund_order": [less]})
    assert [args.get("amount") for name, args in calls if name == "refund_order"] == ["80.00", "30.00"]
    assert names(calls)[-1] == "give_up"


def test_an_order_that_is_not_found_is_given_up():
    calls = play(SCRIPTS["refund"], {"get_order": [{"outcome": "declined", "status": "not_found"}]})
    assert names(calls) == ["get_order", "give_up"] and "not_found" in calls[-1][1]["reason"]


def test_a_reading_that_failed_for_the_moment_is_tried_again():
    answers = READING | {"get_order": [{"outcome": "retryable", "status": "timeout"}, *READING["get_order"]]}
    assert names(play(SCRIPTS["refund"], answers)) == ["get_order", "get_order", "refund_order"]


def test_a_refused_end_reads_what_is_missing_and_never_pays_again():
    lacks = {
        "outcome": "not_finished",
        "missing": ["check order_read: an ok outcome of get_order whose order_id is the input"],
    }
    answers = READING | {"refund_order": [ok("refund:R-1:v1", amount="80.00")], "finish": [lacks, lacks]}
    calls = play(SCRIPTS["refund"], answers)
    assert names(calls)[:5] == ["get_order", "refund_order", "finish", "get_order", "finish"]
    assert names(calls).count("refund_order") == 1 and "order:O-1042:v3" in calls[4][1]["evidence"]


def test_a_run_resumed_after_giving_up_reads_again():
    answers = READING | {"refund_order": [REFUSED], "give_up": [{"outcome": "ok"}]}
    calls = play(SCRIPTS["refund"], answers, told=["", "", "A person resumed the run."])
    assert names(calls)[:4] == ["get_order", "refund_order", "give_up", "get_order"]


def test_a_new_segment_after_the_refund_does_not_pay_again():
    messages = opening()
    messages[0]["content"].append(
        {"type": "text", "text": "This goes on from 2 earlier turns of the same run.\nEffects so far: refund_order: 1."}
    )
    assert names(play(SCRIPTS["refund"], READING, messages)) == ["get_order", "finish"]


def test_an_investigation_is_opened_for_a_lost_shipment_and_cited():
    calls = play(
        SCRIPTS["order-investigation"], READING | {"open_investigation": [ok("investigation:I-1:v1", id="I-1")]}
    )
    assert names(calls) == ["get_order", "get_shipment", "open_investigation", "finish"]
    assert calls[-1][1]["evidence"] == ["order:O-1042:v3", "shipment:L-88:v2", "investigation:I-1:v1"]


def test_a_refused_investigation_is_told_truthfully():
    answer = play(SCRIPTS["order-investigation"], READING | {"open_investigation": [REFUSED]})[-1][1]["answer"]
    assert "No investigation is known to be open" in answer and "Not this one" in answer


def test_stock_is_counted_and_an_empty_shelf_is_said():
    full = ok(
        "stock:LAMP-01:v1",
        name="Desk lamp",
        stock=[{"warehouse": "Hamburg", "quantity": 7}, {"warehouse": "Leipzig", "quantity": 5}],
    )
    assert "12 in stock" in play(SCRIPTS["stock-question"], {"lookup_stock": [full]})[-1][1]["answer"]
    empty = play(SCRIPTS["stock-question"], {"lookup_stock": [ok("stock:LAMP-01:v1", stock=[])]})
    assert "out of stock" in empty[-1][1]["answer"]


def test_the_messenger_sends_the_text_unchanged_and_once():
    calls = play(SCRIPTS["messenger"], {"send_message": [ok("message:M-1:v1", id="M-1")]})
    assert calls[0][1]["text"] == "Hello <you>" and names(calls) == ["send_message", "finish"]


def test_three_calls_meet_three_verdicts_and_end():
    denied = {"outcome": "denied", "reason": "above 500.00"}
    answers = READING | {"refund_order": [ok("refund:R-1:v1", amount="80.00"), denied]}
    calls = play(PACK["three-calls"], answers)
    assert names(calls) == ["get_order", "refund_order", "refund_order", "get_order", "finish"]
    assert "ok, ok, denied" in calls[-1][1]["answer"]


@pytest.mark.parametrize("kind", ["truncated", "duplicate_id", "refusal", "too_many_calls", "unparsable"])
def test_an_answer_that_never_enters_the_conversation_is_wrong_once_per_request(kind):
    said = PACK[f"misbehave-{kind}"](opening())
    assert said == PACK[f"misbehave-{kind}"](opening()), "a script is a pure function of the messages"
    assert (said["misbehave"], said["times"], said["then"][-1]["name"]) == (kind, 1, "get_order")


def test_an_end_without_a_word_is_made_once():
    told = {"type": "text", "text": "Ending with text alone is a claim without evidence. Missing: x"}
    assert PACK["misbehave-empty_end"](opening()) == {"misbehave": "empty_end"}
    messages = [
        *opening(),
        {"role": "assistant", "content": [{"type": "text", "text": "(nothing)"}]},
        {"role": "user", "content": [told]},
    ]
    assert PACK["misbehave-empty_end"](messages)[-1]["name"] == "get_order"


@pytest.mark.parametrize(("kind", "first"), [("unknown_tool", "launch_rocket"), ("invalid_arguments", "get_order")])
def test_a_wrong_call_is_made_once_and_then_the_proper_one(kind, first):
    invalid = {"outcome": "invalid", "reason": "no"}
    answers = {
        "launch_rocket": [invalid],
        "get_order": [*([invalid] if first == "get_order" else []), *READING["get_order"]],
    }
    assert names(play(PACK[f"misbehave-{kind}"], answers)) == [first, "get_order", "finish"]


def test_the_stubborn_ones_are_stubborn():
    assert names(play(PACK["repeater"], READING)) == ["get_order"] * 12
    assert play(PACK["text-end"], {}, told=["Missing"] * 5) == []
    assert names(play(PACK["quitter"], {})) == ["give_up"]


@pytest.mark.parametrize("shape", [{"data": {"colour": "white"}}, {"answer": {"colour": "white"}}, {"answer": "white"}])
def test_the_asker_quotes_what_a_person_said(shape):
    calls = play(PACK["asker"], READING | {"ask_user": [{"outcome": "ok"} | shape]})
    assert names(calls) == ["ask_user", "get_order", "finish"] and "white" in calls[-1][1]["answer"]
