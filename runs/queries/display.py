"""Text from outside, made fit to be looked at: nothing invisible, nothing cut, nothing reordered (security.md 3.4).

Never strip: show. The result is plain text; templates escape it like any other.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Invisible, though Unicode files them under letters, marks or symbols.
INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC}
    | {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
)
BRACKETS = "⟦⟧"  # ours: from outside they are shown by number too, so that no text can fake an escape
MARKS = 3
BLANKS = re.compile(r" {8,}")
ESCAPE = re.compile(r"⟦[^⟦⟧]*⟧")


def visible(text: str) -> str:
    """`text` with every invisible character as ⟦U+XXXX⟧; line ends are kept."""
    return "\n".join(_line(line) for line in text.split("\n"))


def hidden_in(shown: str) -> int:
    """How many escapes a result of `visible` holds."""
    return len(ESCAPE.findall(shown))


def _line(line: str) -> str:
    body = line.rstrip(" ")
    trailing = len(line) - len(body)
    shown = BLANKS.sub(lambda run: "⟦" + _("{n} spaces").format(n=len(run[0])) + "⟧", "".join(_characters(body)))
    if not trailing:
        return shown
    return shown + "⟦" + ngettext("%(n)s space at the end", "%(n)s spaces at the end", trailing) % {"n": trailing} + "⟧"


def _characters(text: str) -> Iterator[str]:
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        yield _escape(character) if _must_show(character, category) or marks > MARKS else character


def _must_show(character: str, category: str) -> bool:
    if character == " ":
        return False
    return category in HIDDEN or ord(character) in INVISIBLE or character in BRACKETS


def _escape(character: str) -> str:
    return f"⟦U+{ord(character):04X}⟧"


@dataclass(frozen=True)
class Leaf:
    """One value of some arguments: where it stands, what it is, how it reads. `bytes` counts UTF-8."""

    pointer: str
    name: str
    type: str
    bytes: int
    shown: str
    hidden: int
    raw: Any

    @property
    def lines(self) -> list[str]:
        """The shown text by line."""
        return self.shown.split("\n")


def leaves(value: Any) -> list[Leaf]:
    """Every leaf of a JSON value, in order, nothing cut."""
    return list(_leaves(value, ""))


def _leaves(value: Any, pointer: str) -> Iterator[Leaf]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{pointer}/{index}")
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        shown = visible(text)
        name = visible(pointer.removeprefix("/")).replace("\n", "⟦U+000A⟧")
        size = len(text.encode("utf-8", "surrogatepass"))
        yield Leaf(pointer, name, _type(value), size, shown, hidden_in(shown), value)


def _type(value: Any) -> str:
    names = {
        str: _("text"),
        bool: _("true or false"),
        int: _("number"),
        float: _("number"),
        dict: _("empty object"),
        list: _("empty list"),
    }
    return names.get(type(value), _("nothing"))


def pretty(text: str) -> str:
    """Stored JSON for reading, or the text itself where it is not JSON; invisible characters shown."""
    try:
        return visible_layout(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except ValueError:
        return visible(text)


def visible_layout(text: str) -> str:
    """As `visible`, but the indentation that we made ourselves is kept."""
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + _line(line.lstrip(" ")) for line in text.split("\n"))


def one_line(text: str, most: int = 300) -> str:
    """The beginning of a text on one line, for lists; the whole stands on the detail page."""
    short = " ".join(text.split("\n"))
    return visible(short if len(short) <= most else short[: most - 1] + "…")
