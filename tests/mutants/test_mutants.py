"""Each promise broken on purpose is noticed by the test that the table names, and by an assertion of that test.

All copies are tried at once, as many at a time as there are processors; the tests below only read the results.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mutants.page import PAGE, page
from tests.mutants.table import MUTANTS, Mutant, Patch
from tests.mutants.workshop import NotExact, Results, copy_of_the_tree, mutated, of, run_tests, survived

POSTGRESQL = bool(os.environ.get("TEST_DATABASE_URL"))
HERE = [mutant for mutant in MUTANTS if POSTGRESQL or not mutant.postgresql]


def chosen(request: pytest.FixtureRequest) -> list[Mutant]:
    """The mutants of this session: `-k` leaves some out."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    return [call.params["mutant"] for call in calls if call and "mutant" in call.params]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what stands in the work tree."""
    return copy_of_the_tree(tmp_path_factory.mktemp("pristine"))


@pytest.fixture(scope="session")
def unharmed(pristine: Path, request: pytest.FixtureRequest) -> Results:
    """What the chosen tests come to where nothing was changed."""
    return run_tests(pristine, sorted({test for mutant in chosen(request) for test in mutant.tests}), seconds=300)


@pytest.fixture(scope="session")
def trials(
    pristine: Path, unharmed: Results, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[str, Future[Results]]]:
    """The named tests of each chosen mutant, run in its copy."""
    folder = tmp_path_factory.mktemp("mutants")

    def trial(number: int, mutant: Mutant) -> Results:
        return run_tests(mutated(pristine, folder / str(number), mutant.patches), mutant.tests)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {mutant.name: pool.submit(trial, n, mutant) for n, mutant in enumerate(chosen(request))}


@pytest.mark.parametrize("mutant", HERE, ids=[mutant.name for mutant in HERE])
def test_is_noticed(mutant: Mutant, unharmed: Results, trials: dict[str, Future[Results]]) -> None:
    for test in mutant.tests:
        assert of(unharmed, test), f"{test} does not exist"
        assert not any(of(unharmed, test).values()), "it fails without the mutant"
    assert survived(mutant, trials[mutant.name].result()) == [], f"nobody notices that: {mutant.promise}"


def test_every_name_stands_once() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[a-z' -]+", name) for name in names)


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text() == page(), "write it again: python -m tests.mutants.page"


class TestAMutantThatIsNone:
    """The suite's own alarm: it must not call a mutant killed that was not."""

    def harmless(self, *tests: str, new: str = "nudge watchers.") -> Mutant:
        return Mutant("harmless", 1, "x", (Patch("runs/notify.py", "nudge watchers.", new),), tests)

    def test_survives_where_the_test_passes(self, pristine: Path, tmp_path: Path) -> None:
        test = "tests/engine/test_next_step.py::test_limits_are_those_of_the_run"
        mutant = self.harmless(test)
        results = run_tests(mutated(pristine, tmp_path / "copy", mutant.patches), mutant.tests)
        assert survived(mutant, results) == [f"{test} passed"]

    def test_is_not_killed_by_an_import_that_fails(self, pristine: Path, tmp_path: Path) -> None:
        patch = Patch("runs/engine/limits.py", "SECOND = 1_000_000", "SECOND = nonsense")
        tree = mutated(pristine, tmp_path / "copy", [patch])
        with pytest.raises(AssertionError, match=r"pytest ended with [2-5]"):
            run_tests(tree, ["tests/engine/test_next_step.py"])

    @pytest.mark.parametrize(
        ("came_to", "reason"),
        [
            ("", "passed"),
            ("TypeError: no", "died of: TypeError"),
            ("error: AssertionError: in a fixture", "died of: error"),
            ("skipped: not today", "died of: skipped"),
        ],
    )
    def test_is_not_killed_by_anything_but_an_assertion(self, came_to: str, reason: str) -> None:
        (found,) = survived(self.harmless("t.py::t"), {"t.py::t": came_to})
        assert reason in found
        assert survived(self.harmless("t.py::t"), {}) == ["t.py::t was not run"]

    def test_is_refused_where_its_text_is_not_found_once(self, pristine: Path, tmp_path: Path) -> None:
        for n, old in enumerate(("this stands nowhere", "def ")):
            with pytest.raises(NotExact):
                mutated(pristine, tmp_path / str(n), [Patch("runs/notify.py", old, "")])
