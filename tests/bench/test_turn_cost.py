"""What a turn may cost is a promise, so a slip is found here and not in the next measurement."""

import gc
import json
import os
import subprocess
import sys

from agentops.celery import settle_down
from bench.turns import per_turn
from tests.stack import ROOT, clean_environment


def test_a_turn_with_one_effect_costs_two_commits_and_at_most_six_queries() -> None:
    env = clean_environment()
    if os.environ.get("TEST_DATABASE_URL"):
        env["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
    command = [sys.executable, "-m", "bench", "queries_per_turn", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(f["what"], f["reached"]) for f in found} <= {
        ("commits", "stretch"), ("queries", "goal"), ("queries", "stretch"),
    }  # fmt: skip
    assert {f["ours"] for f in found if f["what"] == "commits"} == {2.0}


def test_a_worker_that_is_up_is_not_held_up_by_looking_through_what_it_loaded() -> None:
    settle_down()
    try:
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


def test_a_turn_is_counted_from_one_question_to_the_next_and_without_the_model_if_so_asked() -> None:
    run = {"marks": [(0.0, 0.0), (1.0, 0.5), (3.0, 1.5)], "provider": [(0.25, 0.25), (0.5, 0.5), (0.1, 0.1)]}
    assert per_turn(run, 0, True) == [1.0, 2.0]
    assert per_turn(run, 1, False) == [0.25, 0.5]
