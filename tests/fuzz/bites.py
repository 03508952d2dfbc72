"""Does the fuzz bite? Mutants of `tests/mutants/table.py`, and after how many scenarios the fuzz fails on each.

``python -m tests.fuzz.bites [SEEDS]`` prints the table. No seed was chosen for a mutant: all begin at 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.table import MUTANTS
from tests.mutants.workshop import copy_of_the_tree, mutated

# Of those that change what happens in a world; others break what a page says, or how a text is read.
CHOSEN = (
    "seq dropped", "epoch dropped", "intent after send", "opaque retried", "key recomputed with the attempt",
    "resend under another key", "a resend's refusal believed", "unknown retried", "cancel leaves ready calls",
    "cancel forgets doubt", "late evidence dropped", "send after the lease", "policy not fenced",
    "approval not consumed", "failure without proof believed", "resend after cancel",
)  # fmt: skip
FOUND = re.compile(r"^scenario (\d+), seed (\S+): (.*)$", re.MULTILINE)


def bite(tree: Path, seeds: str) -> str:
    """Run the fuzz in a tree until it fails; which scenario did, and of what."""
    env = os.environ | {"FUZZ_SEEDS": seeds, "FUZZ_STOP": "1"}
    test = "tests/fuzz/test_fuzz.py::test_whatever_happens_no_effect_is_lost_repeated_or_denied_and_nothing_is_stuck"
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if found := FOUND.search(done.stdout):
        return f"{found[1]} | {found[3][:110]}"
    lacks = re.search(r"not tested, because it never happened: (.*)", done.stdout)
    return f"coverage | {lacks[1][:110]}" if lacks else f"survived | exit {done.returncode}"


def main(seeds: str = "150") -> None:
    """Try each."""
    chosen = [mutant for mutant in MUTANTS if mutant.name in CHOSEN]
    assert len(chosen) == len(CHOSEN), "a mutant was renamed"
    with tempfile.TemporaryDirectory() as folder:
        pristine = copy_of_the_tree(Path(folder) / "pristine")
        for number, mutant in enumerate(chosen):
            tree = mutated(pristine, Path(folder) / str(number), mutant.patches)
            sys.stdout.write(f"| {mutant.name} | {bite(tree, seeds)} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
