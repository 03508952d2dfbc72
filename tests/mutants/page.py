"""docs/mutants.md, written from the table: `python -m tests.mutants.page`."""

from __future__ import annotations

from tests.mutants.table import MUTANTS
from tests.stack import ROOT

PAGE = ROOT / "docs" / "mutants.md"
HEAD = """# Mutants

Ways in which somebody could break a promise of [the house](architecture.md) while the code still looks right, and the
tests that notice. `make mutants` puts each into a copy of the package and runs the named tests there: every one of them
must fail by an assertion of its own, and pass where nothing was changed. A mutant whose text does not stand exactly
once in its file fails the suite.

Written from `tests/mutants/table.py` by `python -m tests.mutants.page`. The number is that of the invariant.

| mutant | # | the promise that it breaks | noticed by |
|---|---|---|---|
"""


def page() -> str:
    """The page as it should stand."""
    rows = []
    for mutant in sorted(MUTANTS, key=lambda mutant: mutant.invariant):
        name = f"{mutant.name} (PostgreSQL)" if mutant.postgresql else mutant.name
        tests = "<br>".join(f"`{test}`" for test in mutant.tests)
        rows.append(f"| {name} | {mutant.invariant} | {mutant.promise} | {tests} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
