"""The order service as a remote: keys, faults, restarts, ledger, pages."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

REFUND = {"order_id": "O-1042", "amount": "80.00", "currency": "EUR", "reason": "Broken lamp"}


def refund(service, key="k", body=None, **headers):
    return service.http("POST", "/refunds", body or REFUND, Idempotency_Key=key, **headers)


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("path", ["/refunds", "/investigations"])
def test_an_effect_with_a_key_is_refused_without_one(service, path):
    answer = service.http("POST", path, REFUND)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "key_required")
    assert service.effects() == 0


def test_the_same_request_again_brings_the_stored_answer(service):
    first, again = refund(service), refund(service)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first.headers
    assert service.effects("key=k") == 1


def test_the_same_key_with_another_body_is_refused(service):
    refund(service)
    answer = refund(service, body=REFUND | {"amount": "81.00"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "idempotency_key_reuse")


def test_keys_belong_to_a_customer(service):
    refund(service)
    answer = refund(service, body=REFUND | {"order_id": "O-2001"}, X_Customer="C-8")
    assert (answer.status_code, service.effects()) == (201, 2)


def test_of_many_at_once_with_one_key_one_runs(service):
    service.arm("delay", seconds=0.5)
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(a.status_code for a in pool.map(lambda _: refund(service), range(8)))
    assert codes == [201] + [409] * 7
    assert (refund(service).status_code, service.effects()) == (201, 1)


def test_many_refunds_at_once_never_exceed_the_order(service):
    with ThreadPoolExecutor(8) as pool:
        codes = [a.status_code for a in pool.map(lambda n: refund(service, key=f"k{n}"), range(8))]
    assert (codes.count(201), codes.count(422), service.effects()) == (3, 5, 3)


def test_a_failed_validation_keeps_nothing_under_the_key(service):
    assert refund(service, body=REFUND | {"order_id": "O-9"}).status_code == 404
    assert refund(service, body=REFUND | {"amount": "x"}).status_code == 422
    assert refund(service).status_code == 201


def test_a_business_answer_is_kept_under_the_key(service):
    too_much = REFUND | {"amount": "249.01"}
    assert refund(service, body=too_much).json()["error"]["code"] == "exceeds_refundable"
    assert refund(service, body=too_much).headers["Idempotency-Replayed"] == "true"


def test_a_failure_after_the_beginning_is_kept_and_one_before_is_not(service):
    service.arm("broken")
    service.arm("error", contains="O-1044")
    small = REFUND | {"order_id": "O-1044", "amount": "1.00"}
    assert [refund(service, "a").status_code, refund(service, "a").status_code] == [500, 500]
    assert [refund(service, "b", small).status_code, refund(service, "b", small).status_code] == [500, 201]


def test_a_key_older_than_the_retention_is_a_new_request(own):
    service = own("--retention", "0.3")
    refund(service)
    assert refund(service).headers["Idempotency-Replayed"] == "true"
    time.sleep(0.35)
    assert "Idempotency-Replayed" not in refund(service).headers
    assert service.effects("key=k") == 2
    assert "2 (doubled)" in service.http("GET", "/ledger").text


def test_kill_and_restart_keep_ledger_keys_and_port(own):
    service = own()
    first, url = refund(service), service.url
    service.end(signal.SIGKILL)
    service.start()
    assert (service.url, refund(service).content) == (url, first.content)
    assert service.effects("key=k") == 1


def test_a_key_whose_request_died_with_the_process_is_free_again(own):
    service = own()
    service.arm("delay", seconds=30)
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(refund, service)
        with sqlite3.connect(service.folder / "demo-service.sqlite3") as db:
            wait_for(lambda: db.execute("SELECT count(*) FROM keys").fetchone()[0] == 1)
        service.end(signal.SIGKILL)
        assert isinstance(hanging.exception(), httpx2.TransportError)
    service.start()
    assert (refund(service).status_code, service.effects()) == (201, 1)


def test_sigterm_ends_it_at_once_even_with_a_request_hanging(own):
    service = own()
    service.arm("delay", seconds=30)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(refund, service)
        time.sleep(0.2)
        began = time.monotonic()
        assert service.end() == 0
        assert time.monotonic() - began < 2


def test_a_port_that_another_took_meanwhile_is_left_to_it(service, own, tmp_path):
    (tmp_path / "demo-service.json").write_text(json.dumps({"url": service.url, "pid": 1}))
    other = own()
    assert (other.url != service.url, other.http("GET", "/healthz").status_code) == (True, 200)


def test_a_folder_belongs_to_one_process(own, tmp_path):
    service = own()
    command = [sys.executable, "-m", "demo.service", "--data", str(tmp_path)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=10)
    assert (second.returncode, "another demo service" in second.stderr) == (1, True)
    assert service.http("GET", "/healthz").json() == {"ok": True}


def test_two_services_on_two_folders_know_nothing_of_each_other(service, own):
    other = own()
    refund(other)
    assert (service.url != other.url, service.effects(), other.effects()) == (True, 0, 1)


def test_a_fault_hits_only_what_it_names_and_as_often_as_said(service):
    service.arm("throttle", method="POST", path="/refunds", contains="O-1044", times=2)
    small = REFUND | {"order_id": "O-1044", "amount": "1.00"}
    assert refund(service, "other").status_code == 201
    assert [refund(service, "k", small).status_code for _ in range(3)] == [429, 429, 201]


def test_a_fault_without_a_count_stays_until_it_is_cleared(service):
    service.arm("error", id="always", path="/orders", times=None)
    assert [service.http("GET", "/orders/O-1042").status_code for _ in range(3)] == [500] * 3
    assert service.http("DELETE", "/admin/faults?id=always").json() == {"faults": []}
    assert service.http("GET", "/orders/O-1042").status_code == 200


def test_a_header_asks_for_a_fault_for_one_request(service):
    assert refund(service, X_Fault="throttle; retry_after=9").headers["Retry-After"] == "9"
    with pytest.raises(httpx2.RemoteProtocolError):
        refund(service, X_Fault="reply_lost")
    assert service.effects() == 1


def test_cut_resets_the_connection_and_a_lost_reply_closes_it(service):
    with pytest.raises(httpx2.ReadError):
        refund(service, X_Fault="cut")
    with pytest.raises(httpx2.RemoteProtocolError):
        refund(service, X_Fault="late; seconds=0.1")
    wait_for(lambda: service.effects() == 1)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "nonsense"},
        {},
        {"kind": "cut", "times": 0},
        {"kind": "late", "seconds": 1e9},
        {"kind": "cut", "what": 1},
        {"kind": "cut", "times": "x"},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(service, fault):
    assert service.http("PUT", "/admin/faults", fault).status_code == 400


def test_the_faults_page_arms_the_lost_reply_in_one_click(service):
    page = service.http("GET", "/admin/faults").text
    assert "Lose the reply of the next refund" in page
    form = {"kind": "reply_lost", "method": "POST", "path": "/refunds", "times": "1"}
    assert service.web.post(service.url + "/admin/faults", data=form).status_code == 303
    with pytest.raises(httpx2.RemoteProtocolError):
        refund(service)
    assert (refund(service).status_code, service.effects("key=k")) == (201, 1)


def test_the_ledger_counts_effects_by_key_order_and_kind(service):
    refund(service, "a")
    refund(service, "b", REFUND | {"order_id": "O-1044", "amount": "1.00"})
    service.http("POST", "/investigations", {"order_id": "O-1043", "reason": "lost"}, Idempotency_Key="c")
    for _ in range(2):
        service.http("POST", "/messages", {"order_id": "O-1042", "text": "Hello"})
    told = service.http("GET", "/ledger.json").json()
    assert (told["total"], told["by_key"]) == (5, {"a": 1, "b": 1, "c": 1, "": 2})
    assert told["by_kind"] == {"refund": 2, "investigation": 1, "message": 2}
    assert [service.effects(q) for q in ("order=O-1042", "kind=refund", "key=a&kind=message")] == [3, 2, 0]
    assert set(told["rows"][0]) == {"n", "at", "kind", "key", "object", "order_id", "body_digest", "request"}


def test_pages_escape_what_came_from_outside(service):
    refund(service, "<script>alert(1)</script>")
    service.arm("cut", path="/x", contains="<b>&\"'")
    ledger, faults = service.http("GET", "/ledger"), service.http("GET", "/admin/faults")
    assert "<script>" not in ledger.text and "&lt;script&gt;alert(1)&lt;/script&gt;" in ledger.text
    assert "<b>" not in faults.text and "&lt;b&gt;&amp;&quot;&#x27;" in faults.text
    assert "default-src 'none'" in ledger.headers["Content-Security-Policy"]


def test_other_sites_in_the_same_browser_can_do_nothing(service):
    form = {"do": "start_over"}
    foreign = service.web.post(service.url + "/admin/faults", data=form, headers={"Origin": "http://evil.example"})
    rebound = service.web.get(service.url + "/ledger", headers={"Host": "evil.example"})
    assert (foreign.status_code, rebound.status_code) == (403, 403)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"[" * 60000, 400), (b'{"order_id": 1}', 400), (b"x" * 70000, 413), (b"\xff", 400)],
)
def test_a_bad_body_is_refused_and_does_not_hurt(service, body, status):
    headers = {"X-Customer": "C-7", "Idempotency-Key": "k"}
    assert service.web.post(service.url + "/refunds", content=body, headers=headers).status_code == status
    assert service.http("GET", "/healthz").status_code == 200


def test_strangers_wrong_paths_and_wrong_methods_are_told_so(service):
    assert service.http("GET", "/orders/O-1042", X_Customer="").status_code == 401
    assert service.http("GET", "/nowhere").status_code == 404
    assert service.http("DELETE", "/orders/O-1042").status_code == 405


def test_every_object_has_a_version(service):
    refund(service)
    service.http("POST", "/messages", {"order_id": "O-1042", "text": "Hello"})
    paths = ("/orders/O-1042", "/shipments/L-88", "/stock/LAMP-01", "/customers/C-7", "/refunds/R-1", "/messages/M-1")
    assert [service.http("GET", path).json()["version"] for path in paths] == [4, 2, 1, 1, 1, 1]
    assert service.http("GET", "/refunds/R-1", X_Customer="C-8").status_code == 404
