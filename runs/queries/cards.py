"""How a call is shown before it is decided: what is at stake first, then the shape that its tool asks for.

A tool says so in `ToolSpec.card`; what names no card, or one that is not known here, is shown by its arguments alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.engine.toolspec import ToolSpec
from runs.models import Run
from runs.queries.display import Leaf, leaves, pretty, visible
from runs.queries.words import packaged

SIGNS = {"EUR": "€", "USD": "$", "GBP": "£"}
WORDS = re.compile(r"[\w.,:-]+|[^\w.,:-]+")
AROUND = 3  # lines that are kept around a change


@dataclass
class Readout:
    """One figure at the head of a decision."""

    label: Any
    value: str
    note: Any = ""


@dataclass
class Line:
    """A line of a diff: `kind` is del, ins, same or gap; `parts` are pieces of text, each marked or not."""

    kind: str
    number: str
    parts: list[tuple[str, bool]]


@dataclass
class Argument:
    """A value of the call; `before` is what stood there before an edit."""

    leaf: Leaf
    before: Leaf | None = None
    added: bool = False

    @property
    def changed(self) -> bool:
        """Whether an edit made it what it is."""
        return self.added or self.before is not None


@dataclass
class Card:
    """What stands above the arguments."""

    kind: str = ""
    consequence: str = ""
    readouts: list[Readout] = field(default_factory=list)
    text: str = ""
    path: str = ""
    lines: list[Line] = field(default_factory=list)
    argv: list[str] = field(default_factory=list)


def card_of(spec: ToolSpec | None, values: Mapping[str, Any], run: Run) -> Card:
    """The card of a call by its tool's own description; an empty one where there is none."""
    about = spec.card if spec else {}
    card = Card(str(about.get("kind", "")), visible(packaged(str(about.get("consequence", "")))))
    parts = {part: _value(name, values, run) for part, name in about.items() if part not in ("kind", "consequence")}
    match card.kind:
        case "money":
            amount = _money(parts.get("amount", ""), parts.get("currency", ""))
            card.readouts = [Readout(_("Amount"), amount), *_recipient(about, parts, _("Goes to"))]
        case "message":
            card.text = str(parts.get("text", ""))
            size = len(card.text)
            length = ngettext("{n} character", "{n} characters", size).format(n=size)
            card.readouts = [*_recipient(about, parts, _("To")), Readout(_("Length"), length)]
        case "diff":
            card.path = visible(str(parts.get("path", "")))
            card.lines = changed_lines(str(parts.get("before", "")), str(parts.get("after", "")))
            card.readouts = [Readout(_("Lines"), _size(card.lines), _("added, taken away"))]
        case "command":
            argv = parts.get("argv", [])
            card.argv = [visible(str(part)) for part in (argv if isinstance(argv, list) else [argv])]
            card.readouts = [Readout(_("Program"), card.argv[0] if card.argv else "")]
            if where := parts.get("cwd"):
                card.readouts.append(Readout(_("In folder"), visible(str(where))))
    return card


def _value(name: str, values: Mapping[str, Any], run: Run) -> Any:
    if not name.startswith("fact:"):
        return values.get(name, "")
    fact = run.facts.get(name[5:], "")
    return fact.get("value", "") if isinstance(fact, dict) else fact


def _money(amount: Any, currency: Any) -> str:
    sign = SIGNS.get(str(currency))
    return visible(f"{sign}{amount}" if sign else f"{amount} {currency}".strip())


def _recipient(about: Mapping[str, str], parts: Mapping[str, Any], label: Any) -> list[Readout]:
    if "to" not in about:
        return []
    by_host = about["to"].startswith("fact:")
    note = _("{name}, set by the host").format(name=about["to"][5:]) if by_host else _("as the agent wrote it")
    return [Readout(label, visible(str(parts.get("to", ""))) or "—", note)]


def _size(lines: list[Line]) -> str:
    return "+{} −{}".format(*(sum(line.kind == kind for line in lines) for kind in ("ins", "del")))


def changed_lines(before: str, after: str) -> list[Line]:
    """The lines in which two texts differ, with a few around them; every invisible character is shown."""
    old, new = (visible(text).split("\n") for text in (before, after))
    found: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found += _same(old[a:b], c + 1, first=a == 0, last=b == len(old))
            continue
        pairs = [marked(o, n) for o, n in zip(old[a:b], new[c:d], strict=False)]
        gone = [pair[0] for pair in pairs] + [[(text, False)] for text in old[a + len(pairs) : b]]
        come = [pair[1] for pair in pairs] + [[(text, False)] for text in new[c + len(pairs) : d]]
        found += [Line("del", str(a + i + 1), parts) for i, parts in enumerate(gone)]
        found += [Line("ins", str(c + i + 1), parts) for i, parts in enumerate(come)]
    return found


def _same(lines: list[str], number: int, *, first: bool, last: bool) -> list[Line]:
    shown = [Line("same", str(number + i), [(text, False)]) for i, text in enumerate(lines)]
    head, tail = (0 if first else AROUND), (0 if last else AROUND)
    if len(shown) <= head + tail + 1:
        return shown
    return [*shown[:head], Line("gap", "", [("…", False)]), *(shown[-tail:] if tail else [])]


def marked(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces; what only one of them has is marked, by whole words and numbers."""
    gone: list[tuple[str, bool]] = []
    come: list[tuple[str, bool]] = []
    was, now = WORDS.findall(old), WORDS.findall(new)
    for tag, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        gone += [("".join(was[a:b]), tag != "equal")] if b > a else []
        come += [("".join(now[c:d]), tag != "equal")] if d > c else []
    return gone, come


def arguments(now: Any, before: Any = None) -> list[Argument]:
    """Every value, beside what stood there before an edit."""
    rows = [Argument(leaf) for leaf in leaves(now)]
    if before is None:
        return rows
    old = {leaf.pointer: leaf for leaf in leaves(before)}
    for row in rows:
        was = old.get(row.leaf.pointer)
        row.added = was is None
        row.before = was if was is not None and was.raw != row.leaf.raw else None
    return rows


def compared(before: Any, after: Any) -> list[Line]:
    """Two sets of arguments as lines, the changed values alone; what an edit took away too."""
    old, new = ({leaf.pointer: leaf for leaf in leaves(value)} for value in (before, after))
    found: list[Line] = []
    for number, pointer in enumerate(dict.fromkeys([*old, *new]), 1):
        was, now = old.get(pointer), new.get(pointer)
        if was is not None and now is not None and was.raw == now.raw:
            continue
        gone, come = marked(was.shown if was else "", now.shown if now else "")
        if was is not None:
            found.append(Line("del", str(number), [(f"{was.name}: ", False), *gone]))
        if now is not None:
            found.append(Line("ins", str(number), [(f"{now.name}: ", False), *come]))
    return found


def raw(arguments_text: str) -> str:
    """The exact stored text, laid out."""
    return pretty(arguments_text)
