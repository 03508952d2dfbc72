"""What the tools report, against the real service."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demo import AGENTS, SCRIPTS, TOOLS
from runs.engine.toolspec import InvalidArguments
from runs.tools.base import Kind, Proof

EFFECTS = {
    "refund_order": {},
    "open_investigation": {"order_id": "O-1043", "reason": "It is lost"},
    "send_message": {"order_id": "O-1042", "text": "Hello"},
}
READS = {
    "get_order": {"order_id": "O-1042"},
    "get_shipment": {"shipment_id": "L-88"},
    "lookup_stock": {"sku": "LAMP-01"},
}


@contextmanager
def raw_server(reply: bytes, *, gap: float = 0.0) -> Iterator[str]:
    """Answers each connection with these bytes, one at a time where there is a gap."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                for piece in (reply[i : i + 1] for i in range(len(reply))) if gap else (reply,):
                    connection.sendall(piece)
                    time.sleep(gap)
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("name", "source", "evidence"),
    [
        ("get_order", "orders", "order:O-1042:v3"),
        ("get_shipment", "shipments", "shipment:L-88:v2"),
        ("lookup_stock", "stock", "stock:LAMP-01:v1"),
    ],
)
def test_a_reading_names_its_source_version_and_evidence(service, use, name, source, evidence):
    seen = use(name, **READS[name])
    assert (seen.kind, seen.source, seen.evidence) == (Kind.OK, source, (evidence,))
    assert evidence.endswith(f":v{seen.version}")


def test_an_order_shows_money_as_decimal_text(service, use):
    data = use("get_order", order_id="O-1042").data
    assert (data["total"], data["refundable"], data["currency"]) == ("249.00", "249.00", "EUR")


def test_a_product_that_lies_nowhere_is_ok_and_empty(service, use):
    seen = use("lookup_stock", sku="CHAIR-02")
    assert (seen.kind, seen.data["stock"]) == (Kind.OK, [])


@pytest.mark.parametrize(
    ("name", "args"),
    [("get_order", {"order_id": "O-9"}), ("lookup_stock", {"sku": "NONE-1"}), ("refund_order", {"order_id": "O-9"})],
)
def test_what_does_not_exist_is_declined_as_not_found(service, use, name, args):
    seen = use(name, **args)
    assert (seen.kind, seen.status) == (Kind.DECLINED, "not_found")


def test_another_customers_order_looks_exactly_like_an_absent_one(service, use):
    theirs, absent = use("get_order", order_id="O-2001"), use("get_order", order_id="O-9999")
    assert theirs == absent
    assert use("get_order", order_id="O-2001", facts={"customer": "C-8"}).kind is Kind.OK


def test_another_customers_shipment_looks_exactly_like_an_absent_one(service, use):
    assert use("get_shipment", shipment_id="L-92") == use("get_shipment", shipment_id="L-9999")
    assert use("get_shipment", shipment_id="L-92", facts={"customer": "C-8"}).kind is Kind.OK


def test_another_customers_order_cannot_be_refunded_or_written_about(service, use):
    assert use("refund_order", order_id="O-2001").status == "not_found"
    assert use("send_message", order_id="O-2001", text="Hi").status == "not_found"
    assert service.effects() == 0


@pytest.mark.parametrize(
    "facts", [{}, {"customer": ""}, {"customer": "C-7\r\nX-Fault: cut"}, {"customer": {"id": "C-7"}}]
)
@pytest.mark.parametrize("name", ["get_order", "refund_order", "send_message"])
def test_without_a_customer_from_the_host_nothing_is_sent(service, use, name, facts):
    seen = use(name, facts=facts, **(READS | EFFECTS)[name])
    assert (seen.kind, seen.status, seen.proof) == (Kind.FATAL, "no_customer", Proof.PRE_SEND)


def test_no_tool_takes_the_customer_from_the_model(use):
    with pytest.raises(InvalidArguments, match="customer"):
        use("get_order", order_id="O-1042", customer="C-8")


@pytest.mark.parametrize("amount", ["80", "80.0", "-80.00", "80.000", "1e3", "", "80,00", "80.00\n"])
def test_an_amount_is_a_decimal_with_two_places(use, amount):
    with pytest.raises(InvalidArguments, match="amount"):
        use("refund_order", amount=amount)


def test_a_refund_names_its_number_and_changes_the_order(service, use):
    paid = use("refund_order")
    assert (paid.kind, paid.effect_ref, paid.evidence) == (Kind.OK, "R-1", ("refund:R-1:v1",))
    assert set(paid.changed) == {"order:O-1042", "refund:R-1"}
    order = use("get_order", order_id="O-1042")
    assert (order.version, order.data["refundable"]) == ("4", "169.00")


def test_investigation_and_message_change_themselves_and_not_the_order(service, use):
    assert use("open_investigation", **EFFECTS["open_investigation"]).changed == ("investigation:I-1",)
    assert use("send_message", **EFFECTS["send_message"]).changed == ("message:M-1",)
    assert use("get_order", order_id="O-1042").version == "3"


def test_a_message_goes_to_the_customer_of_the_run(service, use):
    assert use("send_message", order_id="O-1042", text="Hello").data["to"] == "C-7"


def test_more_than_the_rest_is_declined_with_the_rest(service, use):
    use("refund_order", amount="200.00")
    seen = use("refund_order", amount="49.01")
    assert (seen.kind, seen.status, seen.data["refundable"]) == (Kind.DECLINED, "exceeds_refundable", "49.00")


def test_a_refund_of_nothing_is_declined(service, use):
    assert use("refund_order", amount="0.00").status == "bad_amount"


@pytest.mark.parametrize("name", [*READS, *EFFECTS])
def test_a_refused_connection_proves_that_nothing_left(use, monkeypatch, name):
    monkeypatch.setenv("DEMO_SERVICE_URL", f"http://127.0.0.1:{free_port()}")
    seen = use(name, **(READS | EFFECTS)[name])
    assert (seen.kind, seen.status, seen.proof) == (Kind.RETRYABLE, "unreachable", Proof.PRE_SEND)


def test_a_service_that_was_never_started_is_unreachable(use, monkeypatch, tmp_path):
    monkeypatch.delenv("DEMO_SERVICE_URL", raising=False)
    monkeypatch.setenv("AGENTOPS_VAR", str(tmp_path))
    assert (use("refund_order").status, use("refund_order").proof) == ("unreachable", Proof.PRE_SEND)


def test_after_the_deadline_nothing_is_sent(service, use):
    seen = use("refund_order", seconds=0)
    assert (seen.kind, seen.status, seen.proof) == (Kind.RETRYABLE, "deadline", Proof.PRE_SEND)
    assert service.effects() == 0


@pytest.mark.parametrize("name", ["get_order", *EFFECTS])
def test_too_many_requests_is_a_documented_refusal_with_a_time(service, use, name):
    service.arm("throttle", retry_after=7)
    seen = use(name, **(READS | EFFECTS)[name])
    assert (seen.kind, seen.proof, seen.retry_after) == (Kind.RETRYABLE, Proof.REMOTE_REFUSED, 7.0)
    assert service.effects() == 0


@pytest.mark.parametrize(
    ("header", "seconds"), [("86400", 300.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 1.0), ("-5", 1.0), ("", 1.0)]
)
def test_the_time_to_wait_is_bounded(use, monkeypatch, header, seconds):
    reply = f"HTTP/1.1 429 Slow\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n".encode()
    with raw_server(reply) as url:
        monkeypatch.setenv("DEMO_SERVICE_URL", url)
        assert use("refund_order").retry_after == seconds


LOST = [
    ("reply_lost", "connection_lost", 1),
    ("cut", "connection_lost", 0),
    ("half_reply", "connection_lost", 1),
    ("garbage", "unreadable_reply", 1),
    ("error", "http_500", 0),
    ("broken", "http_500", 0),
]


@pytest.mark.parametrize(("fault", "status", "effects"), LOST)
@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_without_a_clear_answer_is_unknown_whether_it_happened_or_not(
    service, use, name, fault, status, effects
):
    service.arm(fault)
    seen = use(name, **EFFECTS[name])
    assert (seen.kind, seen.status, seen.proof) == (Kind.UNKNOWN, status, None)
    assert service.effects() == effects


@pytest.mark.parametrize(("fault", "status"), [(fault, status) for fault, status, _ in LOST])
def test_a_reading_without_a_clear_answer_may_be_tried_again(service, use, fault, status):
    service.arm(fault)
    seen = use("get_order", order_id="O-1042")
    assert (seen.kind, seen.status) == (Kind.RETRYABLE, status)
    assert use("get_order", order_id="O-1042").kind is Kind.OK


@pytest.mark.parametrize(("fault", "effects"), [("delay", 0), ("slow_reply", 1)])
def test_a_timeout_of_an_effect_is_unknown_and_of_a_reading_retryable(service, use, fault, effects):
    service.arm(fault, seconds=1.0, times=2)
    assert (use("refund_order", seconds=0.2).kind, service.effects()) == (Kind.UNKNOWN, effects)
    assert use("get_order", order_id="O-1042", seconds=0.2).kind is Kind.RETRYABLE


def test_a_late_effect_is_unknown_now_and_lands_afterwards(service, use):
    service.arm("late", seconds=0.3)
    assert (use("refund_order", key="late-1").kind, service.effects()) == (Kind.UNKNOWN, 0)
    end = time.monotonic() + 5
    while not service.effects("key=late-1") and time.monotonic() < end:
        time.sleep(0.02)
    assert service.effects("key=late-1") == 1


def test_a_resend_that_overtakes_a_late_request_leaves_one_effect(service, use):
    service.arm("late", seconds=0.2)
    use("refund_order", key="late-2")
    assert use("refund_order", key="late-2").kind is Kind.OK
    time.sleep(0.4)
    assert service.effects("key=late-2") == 1


def test_the_same_key_after_a_lost_reply_brings_the_first_answer(service, use):
    service.arm("reply_lost")
    assert use("refund_order", key="k").kind is Kind.UNKNOWN
    again = use("refund_order", key="k")
    assert (again.kind, again.effect_ref, service.effects()) == (Kind.OK, "R-1", 1)


def test_a_key_that_was_used_with_other_bytes_is_unknown_and_not_a_decline(service, use):
    use("refund_order", key="k")
    seen = use("refund_order", key="k", amount="81.00")
    assert (seen.kind, seen.status, seen.proof) == (Kind.UNKNOWN, "key_reused", None)


def test_a_key_in_progress_is_unknown(service, use):
    service.arm("delay", seconds=0.6)
    first = threading.Thread(target=use, args=("refund_order",), kwargs={"key": "k"})
    first.start()
    time.sleep(0.2)
    seen = use("refund_order", key="k")
    first.join()
    assert (seen.kind, seen.status, service.effects()) == (Kind.UNKNOWN, "in_progress", 1)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\n<html>No!",
        b"HTTP/1.1 302 Go\r\nLocation: /x\r\nContent-Length: 2\r\n\r\n{}",
        b"\x00\x01\x02\r\n\r\n",
    ],
)
def test_an_answer_of_something_else_proves_nothing_about_an_effect(use, monkeypatch, reply):
    with raw_server(reply) as url:
        monkeypatch.setenv("DEMO_SERVICE_URL", url)
        assert use("refund_order").kind is Kind.UNKNOWN


def test_success_for_another_order_is_not_believed(use, monkeypatch):
    body = b'{"id":"R-1","order_id":"O-1","version":1}'
    with raw_server(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) as url:
        monkeypatch.setenv("DEMO_SERVICE_URL", url)
        seen = use("refund_order")
    assert (seen.kind, seen.status) == (Kind.UNKNOWN, "unreadable_reply")


def test_a_reply_that_trickles_ends_at_the_deadline(use, monkeypatch):
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"
    with raw_server(reply + b"x" * 900, gap=0.005) as url:
        monkeypatch.setenv("DEMO_SERVICE_URL", url)
        began = time.monotonic()
        assert use("refund_order", seconds=0.5).status == "timeout"
        assert time.monotonic() - began < 1.5


def test_every_agent_names_tools_and_a_script_that_exist():
    names = {tool.name for tool in TOOLS}
    for agent in AGENTS:
        assert set(agent["tools"]) <= names
        assert {check["tool"] for check in agent["acceptance"]} <= set(agent["tools"])
        assert agent["model"].removeprefix("scripted:") in SCRIPTS


def test_headlines_are_made_from_what_will_run():
    refund = next(tool for tool in TOOLS if tool.name == "refund_order").spec
    args = {"order_id": "O-1042", "amount": "80.00", "currency": "EUR", "reason": "x"}
    assert refund.headline_for(args) == "Refund €80.00 on order O-1042 to the customer who placed it"
    assert refund.object_keys(args) == ("order:O-1042",)
