"""visible(): whatever cannot be seen is shown by its number; whatever can be seen stays as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.queries.display import ESCAPE, hidden_in, leaves, one_line, pretty, visible

CORPUS = [
    0x00, 0x07, 0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x1B, 0x7F, 0x80, 0x85, 0x9B, 0xA0, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160,
    0x1680, 0x17B4, 0x17B5, 0x180B, 0x180E, 0x180F, 0x2000, 0x2003, 0x2007, 0x200A, 0x200B, 0x200C, 0x200D, 0x200E,
    0x200F, 0x2028, 0x2029, 0x202A, 0x202C, 0x202D, 0x202E, 0x202F, 0x205F, 0x2060, 0x2061, 0x2064, 0x2066, 0x2067,
    0x2068, 0x2069, 0x206F, 0x2800, 0x3000, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFC, 0xFFFE, 0xE000,
    0xD800, 0xE0001, 0xE0041, 0xE0100, 0xE01EF, 0xF0000, 0x10FFFF, 0x27E6, 0x27E7,
]  # fmt: skip


@pytest.mark.parametrize("point", CORPUS, ids=hex)
def test_a_character_that_cannot_be_seen_is_shown_by_its_number(point: int) -> None:
    assert visible(f"a{chr(point)}b") == f"a⟦U+{point:04X}⟧b"


@pytest.mark.parametrize(
    "text", ["plain", "Zoë", "退回订单 O-1042", "שלום", "مرحبا", "€80.00", "a\nb", "e\u0301", "🙂", "  two"]
)
def test_what_can_be_seen_stays(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_the_shown_text_never_holds_anything_invisible(text: str) -> None:
    shown = visible(text).replace("\n", "").replace(" ", "")
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") for c in shown)


@given(st.text(), st.text())
def test_two_texts_that_differ_are_shown_differently(one: str, other: str) -> None:
    assert (one == other) == (visible(one) == visible(other))


def test_blanks_that_push_text_out_of_sight_are_counted() -> None:
    assert visible("rm" + " " * 3000 + "-rf /  ") == "rm⟦3000 spaces⟧-rf /⟦2 spaces at the end⟧"


def test_no_text_can_fake_an_escape() -> None:
    assert visible("⟦3000 spaces⟧") == "⟦U+27E6⟧3000 spaces⟦U+27E7⟧"


def test_a_pile_of_marks_is_taken_apart() -> None:
    assert visible("e" + "\u0301" * 5) == "e" + "\u0301" * 3 + "⟦U+0301⟧⟦U+0301⟧"


def test_leaves_show_pointer_type_and_bytes_and_cut_nothing() -> None:
    found = leaves({"a": {"b/c": ["x" * 70_000, 1.5, True, None, {}, []]}, "é": "€\u200b"})
    assert [leaf.pointer for leaf in found][:2] == ["/a/b~1c/0", "/a/b~1c/1"]
    assert [leaf.type for leaf in found] == [
        "text",
        "number",
        "true or false",
        "nothing",
        "empty object",
        "empty list",
        "text",
    ]
    assert len(found[0].shown) == 70_000 and found[-1].bytes == 6 and found[-1].hidden == 1


def test_one_line_is_short_and_pretty_is_laid_out() -> None:
    assert one_line("a\nb\u202e") == "a b⟦U+202E⟧" and len(one_line("x" * 900)) == 300
    assert pretty('{"a":"b\\u200b"}') == '{\n  "a": "b⟦U+200B⟧"\n}' and pretty("no json\u200b") == "no json⟦U+200B⟧"
    assert hidden_in(visible("\u200b")) == 1 and ESCAPE.findall("none") == []
