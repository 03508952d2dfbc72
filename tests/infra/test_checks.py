"""Each check finds what it is for; a clean tree has nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import banned, sizes


def tree(root: Path, **files: str) -> Path:
    for folder in ("agentops", "runs", "demo", "checks", "bench", "scripts", "tests", "templates"):
        (root / folder).mkdir(exist_ok=True)
    for name, text in files.items():
        (root / name.replace("__", "/").replace("_html", ".html").replace("_py", ".py")).write_text(text)
    return root


TEMPLATES = [
    '<p style="color:red">',
    "<style>p{}</style>",
    "<script>go()</script>",
    '<a onclick="go()">',
    '<a href="javascript:go()">',
    '<p hx-on:click="go()">',
    "<p hx-vals='js:{a: 1}'>",
    "{{ text|safe }}",
    "{% autoescape off %}",
]


@pytest.mark.parametrize("markup", TEMPLATES)
def test_markup_that_our_policy_would_refuse(tmp_path: Path, markup: str) -> None:
    assert len(banned.in_templates(tree(tmp_path, templates__page_html=f"<p>ok</p>\n{markup}\n"))) == 1


def test_plain_markup_passes(tmp_path: Path) -> None:
    markup = '<script src="x.js" defer></script><p hx-get="/a" class="style">{{ text }}</p>'
    assert banned.in_templates(tree(tmp_path, templates__page_html=markup)) == []


@pytest.mark.parametrize("line", ["mark_safe(x)", "run(x, shell=True)", "pickle.loads(x)", "RawSQL(x)", "yaml.load(x)"])
def test_calls_that_turn_data_into_code(tmp_path: Path, line: str) -> None:
    assert len(banned.in_code(tree(tmp_path, runs__a_py=line))) == 1


SHORTCUTS = [
    "settings.CELERY_TASK_ALWAYS_EAGER = True",
    "from channels.layers import InMemoryChannelLayer",
    "from unittest.mock import patch",
    'monkeypatch.setattr("runs.notify.wake", print)',
    "from runs import notify\nmonkeypatch.setattr(notify, 'wake', print)",
    "import runs.notify\nmonkeypatch.setattr(runs.notify, 'wake', print)",
]


@pytest.mark.parametrize("text", SHORTCUTS)
def test_shortcuts_in_tests(tmp_path: Path, text: str) -> None:
    assert len(banned.in_tests(tree(tmp_path, tests__a_py=text))) == 1


def test_the_environment_may_be_patched(tmp_path: Path) -> None:
    text = "import time\nmonkeypatch.setenv('A', 'b')\nmonkeypatch.setattr(time, 'time', f)"
    assert banned.in_tests(tree(tmp_path, tests__a_py=text)) == []


def test_long_functions_and_modules(tmp_path: Path) -> None:
    fine = "def f():\n" + "    x = 1\n" * 39
    assert sizes.too_big(tree(tmp_path, runs__a_py=fine)) == []
    assert len(sizes.too_big(tree(tmp_path, runs__a_py=fine + "    x = 2\n", demo__b_py="x = 1\n" * 401))) == 2


def test_only_code_counts_as_spine() -> None:
    text = '"""Doc\nstring."""\n\n# reason\n\ndef f(\n    a,\n):\n    """Doc."""\n    return """two\nlines"""  # why\n'
    assert sizes.code_lines(text) == 5


def test_a_fat_spine_fails(tmp_path: Path) -> None:
    (tmp_path / "runs" / "engine").mkdir(parents=True)
    assert sizes.spine_too_big(tree(tmp_path, runs__engine__a_py="x = 1\n" * sizes.SPINE_LIMIT)) == []
    assert sizes.spine_too_big(tree(tmp_path, runs__engine__a_py="x = 1\n" * (sizes.SPINE_LIMIT + 1))) != []
