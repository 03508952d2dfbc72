"""What the pages name exists: tests, files, knobs, commands, links."""

import ast
import re
from pathlib import Path

import pytest

from tests.stack import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))
KNOB = re.compile(r"""(?:between|seconds|folder|knob|url|env\.str|env\.bool)\(\s*"([A-Z_]+)\"""")
INNER = {"AGENTOPS_COLLECT"}  # set by `make up` for its own child


def test_every_test_named_in_the_architecture_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`", (ROOT / "docs" / "architecture.md").read_text()))
    assert named
    missing = [f"{file}::{name}" for file, name in sorted(named) if name not in functions(ROOT / file)]
    assert not missing


def test_each_invariant_of_the_spine_names_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 19))
    assert [number for number, tests in rows[:15] if "::" not in tests] == []


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text()) if path.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_knob_of_the_settings_is_in_the_readme_and_no_other() -> None:
    read = set(KNOB.findall((ROOT / "agentops" / "settings.py").read_text())) | {"DATABASE_URL"}
    table = (ROOT / "README.md").read_text().partition("## Knobs")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)`", table, re.MULTILINE)) == read - INNER


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_named_files_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)#][^)]*)\)", text)]
    links += re.findall(r'src="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    named = re.findall(r"`((?:runs|agentops|demo|tests|docs|bench|checks)/[\w./]+)`", text)
    missing += [name for name in named if not (ROOT / name.rstrip("/")).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z0-9]+)", text, re.MULTILINE)) <= targets
    for command in set(re.findall(r"manage\.py ([a-z_]+)", text)) - {"migrate", "collectstatic"}:
        assert (ROOT / "runs" / "management" / "commands" / f"{command}.py").exists(), command
