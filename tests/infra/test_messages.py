"""A text that is missing, unsure, left over or filled in wrongly in a language is found, and Chinese needs no tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import messages

PAGE = """{% load i18n %}{% translate "Runs" %}{% translate "50% of it" context "limit" %}
{% blocktranslate count n=runs %}{{ n }} run{% plural %}{{ n }} runs{% endblocktranslate %}{{ _("Inbox") }}
{% blocktranslate trimmed with who=name %}
  {{ who }} has
  100% of it
{% endblocktranslate %}"""
CODE = """
say(_("Nothing was done."), ngettext("%(n)s call", "%(n)s calls", 3), gettext_lazy("Later"), f"no {text}")
raise Refused("{who} was first.", who=name)
said(text, empty="Say why.")
"""
TEXTS = {
    "Runs", "50%% of it", "%(n)s run", "Inbox", "%(who)s has 100%% of it", "Nothing was done.", "%(n)s call", "Later",
    "{who} was first.", "Say why.",
}  # fmt: skip


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for folder in ("agentops", "runs", "demo", "templates"):
        (tmp_path / folder).mkdir()
    (tmp_path / "templates/page.html").write_text(PAGE)
    (tmp_path / "runs/code.py").write_text(CODE)
    messages.write(tmp_path)
    return tmp_path


def translate(house: Path, **texts: str) -> None:
    """Fill in the Chinese catalogue, word for word unless told otherwise, and compile it."""
    path = messages.po(house, "zh_Hans")
    catalog = messages.read(path, "zh_Hans")
    for message in catalog:
        if message.id:
            one = messages.key(message)[1]
            said = texts.get(one, one)
            message.string = said if isinstance(message.id, str) else (said,)
    path.write_bytes(messages.text_of(catalog))
    path.with_suffix(".mo").write_bytes(messages.compiled(catalog))


def test_texts_are_found_where_they_stand(house: Path) -> None:
    found = {messages.key(message) for message in messages.catalogue_of(house) if message.id}
    assert {text for _context, text in found} == TEXTS
    assert ("limit", "50%% of it") in found


def test_whole_catalogues_pass_and_stay_as_they_are(house: Path) -> None:
    translate(house)
    assert messages.check(house) == []
    before = messages.po(house, "zh_Hans").read_bytes()
    messages.write(house)
    assert messages.check(house) == [] and messages.po(house, "zh_Hans").read_bytes() == before


def test_a_text_without_a_translation_is_found(house: Path) -> None:
    translate(house, Inbox="")
    assert [line.partition(": ")[2] for line in messages.check(house)] == [
        "not translated: 'Inbox' (templates/page.html)"
    ]


def test_a_new_text_and_one_that_went_are_found(house: Path) -> None:
    translate(house)
    (house / "templates/page.html").write_text(PAGE.replace("Runs", "Agents"))
    told = "\n".join(messages.check(house))
    assert "zh_Hans/LC_MESSAGES/django.po: not listed: 'Agents'" in told and "no longer used: 'Runs'" in told


def test_an_unsure_translation_and_a_wrong_place_are_found(house: Path) -> None:
    translate(house, **{"{who} was first.": "{wer} war zuerst da."})
    path = messages.po(house, "zh_Hans")
    path.write_text(path.read_text().replace('msgid "Inbox"', '#, fuzzy\nmsgid "Inbox"'))
    told = "\n".join(messages.check(house))
    assert "places ['{who}'] became ['{wer}']" in told and "fuzzy: 'Inbox'" in told


def test_a_catalogue_that_was_not_compiled_is_found(house: Path) -> None:
    translate(house)
    messages.po(house, "zh_Hans").with_suffix(".mo").write_bytes(b"")
    assert len(messages.check(house)) == 1 and "its .mo is not made of it" in messages.check(house)[0]


@pytest.mark.parametrize(
    "text", ["<p>Hello there</p>", '<a title="Go on">{{ x }}</a>', "{{ n }} runs {% if a %}now{% endif %}"]
)
def test_a_text_that_nobody_marked_is_found(house: Path, text: str) -> None:
    translate(house)
    (house / "templates/other.html").write_text(text)
    assert any("templates/other.html: not marked" in line for line in messages.check(house))


def test_names_code_and_what_is_filled_in_need_no_mark(house: Path) -> None:
    (house / "templates/other.html").write_text("<b>AgentOps</b> <code>make up</code> <p class='a b'>{{ x }} · 3</p>")
    assert [line for line in messages.check(house) if "other.html" in line] == []


def test_a_refusal_that_is_put_together_is_found(house: Path) -> None:
    (house / "runs/more.py").write_text('raise Refused(f"Run {run} has ended.", 409)\n')
    assert any("runs/more.py:1: an f-string" in line for line in messages.check(house))
