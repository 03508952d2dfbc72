"""A heartbeat row per process; health is read from them."""

from __future__ import annotations

import os
import subprocess

import pytest

from runs import health
from runs.models import Heartbeat

pytestmark = pytest.mark.django_db


def test_beating_again_moves_the_same_row() -> None:
    health.beat("worker", "a:1")
    first = Heartbeat.objects.get().at
    health.beat("worker", "a:1")
    assert Heartbeat.objects.get().at > first


def test_alive_means_a_worker_and_a_sweeper_that_beat_lately() -> None:
    assert not health.snapshot()["ok"]
    health.beat("worker", "a:1")
    health.beat("sweeper", "a:2")
    assert health.snapshot()["ok"]


def test_one_living_worker_is_enough_and_the_newest_counts() -> None:
    health.beat("sweeper", "a:2")
    Heartbeat.objects.create(kind="worker", ident="a:1", at=health.now_us() - 20_000_000)
    silent = health.snapshot()["worker"]
    assert not silent["ok"] and silent["age"] >= 20 and "start" in silent["what_to_do"]
    health.beat("worker", "b:1")
    assert health.snapshot()["worker"]["ok"]


def test_rows_of_the_long_dead_go() -> None:
    Heartbeat.objects.create(kind="worker", ident="a:1", at=1)
    health.beat("worker", "b:1")
    assert [row.ident for row in Heartbeat.objects.all()] == ["b:1"]


def test_the_rows_of_killed_processes_of_this_machine_are_forgotten() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    for pid in (process.pid, os.getpid()):
        health.beat("worker", health._process(pid))
    health.forget([process.pid])
    assert [row.ident for row in Heartbeat.objects.all()] == [health._process(os.getpid())]


def test_healthz_answers_without_a_login(client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert set(answer.json()) == {"ok", "web", "database", "worker", "sweeper", "record"}
    assert client.post("/healthz").status_code == 405
