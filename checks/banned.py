"""Things that must not appear: markup that a strict CSP would refuse, unsafe calls, tests that test a stand-in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from checks.files import CODE, parsed, python_files, template_files

OURS = ("runs", "agentops", "demo")
IN_TEMPLATES = {
    r"<style\b": "inline style: use static/",
    r"\sstyle\s*=": "inline style: use a class",
    r"<script\b(?![^>]*\bsrc\s*=)": "inline script: use static/",
    r"\son[a-z]+\s*=": "inline handler: use static/",
    r"\bhx-on\b": "hx-on is evaluated code: use static/",
    r"\bjs:": "evaluated code: use plain values",
    r"javascript:": "script in an address",
    r"\|\s*safe\b": "|safe: text from outside is never markup",
    r"autoescape\s+off": "escaping is never switched off",
}
IN_CODE = {
    r"\bmark_safe\(|\bSafeString\(": "mark_safe: use format_html, or escape",
    r"\bshell\s*=\s*True": "shell=True: pass a list",
    r"\bimport pickle\b|\bpickle\.load": "pickle: JSON only",
    r"\byaml\.load\(": "yaml.load: use safe_load",
    r"\bRawSQL\(|\.extra\(": "unchecked SQL: use a query or a cursor with parameters",
}
IN_TESTS = {
    r"(?i)task_always_eager": "eager Celery proves nothing about workers: use the stack",
    r"\bInMemoryChannelLayer\b": "the stock in-memory layer only works by luck across threads: use the configured one",
    r"\bunittest\.mock\b|\bmock\.patch\b|\bmocker\.": "no mocks: use the scripted provider and the demo's faults",
}
ALLOWED = {("agentops/layers.py", r"\bInMemoryChannelLayer\b")}  # its subclass, which is the fix


def in_templates(root: Path) -> list[str]:
    """Markup that is refused by our own Content-Security-Policy, or that trusts text from outside."""
    return _search(root, template_files(root), IN_TEMPLATES)


def in_code(root: Path) -> list[str]:
    """Calls that turn data into code."""
    files = [path for path in python_files(root, *CODE, "tests") if not _about_itself(path)]
    return _search(root, files, IN_CODE)


def in_tests(root: Path) -> list[str]:
    """Shortcuts around the real thing, in tests and in the settings that tests run with."""
    files = [path for path in python_files(root, "tests", "agentops", "bench") if not _about_itself(path)]
    return _search(root, files, IN_TESTS) + [p for path in files for p in patched(root, path)]


def patched(root: Path, path: Path) -> list[str]:
    """`monkeypatch.setattr` of something of ours, by dotted name or by an imported name."""
    tree = parsed(path)
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.asname or a.name.split(".")[0] for a in node.names if a.name.split(".")[0] in OURS}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        f"{path.relative_to(root)}:{call.lineno}: monkeypatch of our own module: test the real thing"
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("setattr", "setitem")
        and _ours(call.args[0], names)
    ]


def _ours(target: ast.expr, names: set[str]) -> bool:
    if isinstance(target, ast.Constant) and isinstance(target.value, str):
        return target.value.split(".")[0] in OURS
    while isinstance(target, ast.Attribute):
        target = target.value
    return isinstance(target, ast.Name) and target.id in names


def _about_itself(path: Path) -> bool:
    """This module and its test have to name what they look for."""
    return path.name in ("banned.py", "test_checks.py")


def _search(root: Path, files: list[Path], rules: dict[str, str]) -> list[str]:
    problems = []
    for path in files:
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, advice in rules.items():
                if re.search(pattern, line) and (name, pattern) not in ALLOWED:
                    problems.append(f"{name}:{number}: {advice}")
    return problems
