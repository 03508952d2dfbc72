"""Every text that people read exists in every language: `python -m checks messages [--write]`.

Texts are found in Python (gettext and its kin) and in templates, as Django itself will look them up; catalogues are
locale/<language>/LC_MESSAGES/django.po, and the .mo beside each is what Django loads, so it must be made of it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po, write_po
from django.template.base import Lexer, Token, TokenType
from django.utils.translation import trim_whitespace
from django.utils.translation.template import block_re, constant_re, endblock_re, inline_re, plural_re

from checks.files import ROOT, parsed, python_files, template_files

LANGUAGES = ("en", "zh_Hans")
SOURCE = "en"  # the language in which the code is written: its catalogue says everything twice
# Whose texts stand in whose catalogues: a package of tools brings its own (docs/bring-your-own.md).
FOLDERS = {"locale": ("agentops", "runs"), "demo/locale": ("demo",)}
# Function -> where its arguments hold (context, text, plural). `Refused` looks its own text up.
CALLS: dict[str, tuple[int | None, int, int | None]] = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "Refused"), (None, 0, None)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (None, 0, 1)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (0, 1, None)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (0, 1, 2)),
}
# Texts given by name, and in the plain descriptions by which a package says what people are to read.
OPTIONS = {"said": ("empty",), "tool": ("headline",)}
ENTRIES = {"demo": ("label", "description", "consequence")}
# Texts of places that know no Django, or that others record or print in English: looked up where they are shown.
CONSTANTS = {
    "runs/engine/machines.py": ("STOP_REASONS",),
    "runs/actions/acting.py": ("UNSOUND",),
    "runs/actions/approvals.py": ("EXPIRED", "WON"),
    "runs/audit/safe_mode.py": ("WHAT",),
    "runs/views/access.py": ("UNREADABLE", "GONE"),
}
# What is no text of ours in a template: marked blocks, comments, code, names, tags.
ASIDE = re.compile(
    r"\{%\s*blocktrans.*?endblocktrans\w*\s*%\}|\{% block frame %\}\w*"
    r"|\{%\s*comment.*?endcomment\s*%\}|<(code|kbd|svg)\b.*?</\1>"
    r"|AgentOps|&\w+;",
    re.DOTALL,
)
FILLED = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
SAID = re.compile(r'\s(?:title|placeholder|alt|aria-label)="([^"]*)"')
WORD = re.compile(r"[^\W\d_]{2,}")
PLACE = re.compile(r"%\(\w+\)[#0 +-]*[\d.]*[a-z]|%[sdif]|\{\w*(?:[.!:][^{}]*)?\}")
Found = tuple[str | tuple[str, ...], str, str | None]  # text (or one and many), file, context


def check(root: Path) -> list[str]:
    """What is missing, fuzzy, no longer used, filled in wrongly, or not compiled."""
    problems = [*unmarked_templates(root), *unmarked_code(root)]
    for folder, language, wanted in catalogues(root):
        path = po(root, language, folder)
        try:
            have = read(path, language)
        except (OSError, PoFileError) as error:
            problems.append(f"{path.relative_to(root)}: {error}; make it with: python -m checks messages --write")
            continue
        problems += [f"{path.relative_to(root)}: {what}" for what in compare(wanted, have)]
        if not path.with_suffix(".mo").exists() or path.with_suffix(".mo").read_bytes() != compiled(have):
            problems.append(f"{path.relative_to(root)}: its .mo is not made of it: python -m checks messages --write")
    return problems


def unmarked_templates(root: Path) -> Iterator[str]:
    """Words in a template that nobody can translate."""
    for path in template_files(root):
        plain = FILLED.sub("\0", ASIDE.sub("\0", path.read_text()))
        for text in (*SAID.findall(plain), *re.sub(r"<[^>]*>", "\0", plain).split("\0")):
            if WORD.search(text) and '="' not in text:  # a tag that is put together of pieces
                yield f"{path.relative_to(root)}: not marked for translation: {' '.join(text.split())[:80]!r}"


def unmarked_code(root: Path) -> Iterator[str]:
    """Texts that are put together before they are looked up: no catalogue can have them."""
    for path in python_files(root, *(folder for folders in FOLDERS.values() for folder in folders)):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and called_by(node) in CALLS:
                for argument in node.args:
                    parts = argument.values if isinstance(argument, ast.JoinedStr) else ()
                    if any(WORD.search(literal(part) or "") for part in parts):
                        yield f"{path.relative_to(root)}:{node.lineno}: an f-string cannot be looked up: use places"


def compare(wanted: Catalog, have: Catalog) -> Iterator[str]:
    """The problems of one catalogue, a line each."""
    theirs = {key(message): message for message in have if message.id}
    ours = {key(message) for message in wanted if message.id}
    for message in wanted:
        if not message.id:
            continue
        mine = theirs.get(key(message))
        if mine is None:
            yield f"not listed: {shown(message)} ({message.locations[0][0]})"
        elif mine.fuzzy:
            yield f"fuzzy: {shown(message)}"
        elif not all(strings(mine)):
            yield f"not translated: {shown(message)} ({message.locations[0][0]})"
        elif wrong := misplaced(mine):
            yield f"{wrong}: {shown(message)}"
    for message in theirs.values():
        if key(message) not in ours:
            yield f"no longer used: {shown(message)}"
    for message in have.obsolete.values():
        yield f"no longer used: {shown(message)}"


def misplaced(message: Message) -> str:
    """What the places to fill in have against a translation; empty if nothing. A singular may leave the number out."""
    ids = message.id if isinstance(message.id, tuple | list) else (message.id,)
    want = {frozenset(PLACE.findall(text)) for text in ids}
    most = frozenset().union(*want)
    for text in strings(message):
        if frozenset(PLACE.findall(text)) not in want | {most}:
            return f"places {sorted(most)} became {sorted(set(PLACE.findall(text)))}"
    return ""


def key(message: Message) -> tuple[str | None, str]:
    """What Django looks a text up by."""
    return message.context, message.id[0] if isinstance(message.id, tuple | list) else message.id


def strings(message: Message) -> tuple[str, ...]:
    """All forms of a translation."""
    return tuple(message.string) if isinstance(message.string, tuple | list) else (message.string or "",)


def shown(message: Message) -> str:
    """A text on one line."""
    return repr(key(message)[1])


def write(root: Path) -> None:
    """Bring the catalogues up to the code: new texts untranslated, unused ones gone; then compile."""
    for folder, language, wanted in catalogues(root):
        path = po(root, language, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        have = read(path, language) if path.exists() else Catalog()
        theirs = {key(message): message for message in have if message.id}
        fresh = Catalog(locale=language, fuzzy=False, header_comment="", charset="utf-8")
        for message in wanted:
            known = theirs.get(key(message))
            if not message.id:
                continue
            string = message.id if language == SOURCE else known.string if known and same(known, message) else ""
            fresh.add(message.id, string, message.locations, message.flags, context=message.context)
        path.write_bytes(text_of(fresh))
        path.with_suffix(".mo").write_bytes(compiled(read(path, language)))
        print(f"{path.relative_to(root)}: {len(fresh)} texts, {sum(not all(strings(m)) for m in fresh if m.id)} to do")


def same(known: Message, message: Message) -> bool:
    """Whether both are with, or both without, a plural."""
    return isinstance(known.id, str) == isinstance(message.id, str)


def text_of(catalog: Catalog) -> bytes:
    """As a file: in the order of texts, without dates, line numbers and tools, so that a change shows itself alone."""
    out = io.BytesIO()
    write_po(out, catalog, omit_header=True, sort_output=True, width=100, include_lineno=False)
    head = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        f'"Language: {catalog.locale}\\n"\n"Plural-Forms: {catalog.plural_forms};\\n"\n\n'
    )
    return head.encode() + out.getvalue()


def read(path: Path, language: str) -> Catalog:
    """A catalogue; raises for a file that is none."""
    with path.open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


def compiled(catalog: Catalog) -> bytes:
    """The bytes that Django loads."""
    out = io.BytesIO()
    catalog.creation_date = catalog.revision_date = datetime(2000, 1, 1, tzinfo=UTC)  # the same bytes each time
    write_mo(out, catalog)
    return out.getvalue()


def po(root: Path, language: str, folder: str = "locale") -> Path:
    """Where a catalogue stands."""
    return root / folder / language / "LC_MESSAGES" / "django.po"


def catalogues(root: Path) -> Iterator[tuple[str, str, Catalog]]:
    """(folder, language, what its catalogue must hold); none for a package without texts."""
    for folder in FOLDERS:
        if len(wanted := catalogue_of(root, folder)):
            yield from ((folder, language, wanted) for language in LANGUAGES)


def catalogue_of(root: Path, folder: str = "locale") -> Catalog:
    """All texts of the code and, beside our own, of the templates."""
    catalog = Catalog(fuzzy=False)
    found = [*in_python(root, FOLDERS[folder]), *(in_templates(root) if folder == "locale" else ())]
    for text, place, context in found:
        catalog.add(text, locations=[(place, 1)], context=context)
    return catalog


def in_python(root: Path, folders: tuple[str, ...]) -> Iterator[Found]:
    """Texts in calls of gettext and its kin, in plain descriptions, and in constants that are looked up when shown."""
    for path in python_files(root, *folders):
        name = str(path.relative_to(root))
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                yield from ((text, name, context) for text, context in called(node))
            elif isinstance(node, ast.Dict):
                yield from ((text, name, None) for text in described(node, ENTRIES.get(name.partition("/")[0], ())))
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and target.id in CONSTANTS.get(name, ()):
                    texts = (literal(each) for each in ast.walk(node.value))
                    yield from ((text, name, None) for text in texts if text and " " in text)


def described(node: ast.Dict, names: tuple[str, ...]) -> Iterator[str]:
    """Values of a dict in the source that people read."""
    for name, value in zip(node.keys, node.values, strict=True):
        if name is not None and literal(name) in names and (text := literal(value)):
            yield text


def called(node: ast.Call) -> Iterator[tuple[str | tuple[str, ...], str | None]]:
    """(text, context) of a call; one without a plain text, such as an f-string, is none."""
    function = called_by(node)
    if function in CALLS:
        at_context, at_text, at_plural = CALLS[function]
        words = [literal(argument) for argument in node.args]
        if len(words) > at_text and (text := words[at_text]):
            plural = words[at_plural] if at_plural is not None else None
            yield (text, plural) if plural else text, words[at_context] if at_context is not None else None
    for option in node.keywords:
        if option.arg in OPTIONS.get(function, ()):
            yield from ((text, None) for each in ast.walk(option.value) if (text := literal(each)) and " " in text)


def called_by(node: ast.Call) -> str:
    """The last name of what is called."""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def literal(node: ast.AST) -> str | None:
    """The text of a string that stands in the source."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def in_templates(root: Path) -> Iterator[Found]:
    """Texts in {% translate %}, {% blocktranslate %} and _("...")."""
    for path in template_files(root):
        for text, context in template_texts(path.read_text()):
            yield text, str(path.relative_to(root)), context


def template_texts(source: str) -> Iterator[tuple[str | tuple[str, ...], str | None]]:
    """(text, context); percent signs doubled as Django's tags double them."""
    tokens = iter(Lexer(source).tokenize())
    for token in tokens:
        if token.token_type == TokenType.TEXT:
            continue
        if token.token_type == TokenType.BLOCK and (inline := inline_re.match(token.contents)):
            yield inline[1][1:-1].replace("%", "%%"), inline[3][1:-1] if inline[3] else None
        elif token.token_type == TokenType.BLOCK and (block := block_re.match(token.contents)):
            yield _block(tokens, "trimmed" in token.split_contents()), block[2][1:-1] if block[2] else None
        for constant in constant_re.findall(token.contents):
            yield constant[1:-1].replace("%", "%%"), None


def _block(tokens: Iterator[Token], trimmed: bool) -> str | tuple[str, ...]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.BLOCK:
            if endblock_re.match(token.contents):
                break
            if plural_re.match(token.contents):
                parts.append([])
        else:
            is_text = token.token_type == TokenType.TEXT
            parts[-1].append(token.contents.replace("%", "%%") if is_text else f"%({token.contents})s")
    texts = [trim_whitespace("".join(part)) if trimmed else "".join(part) for part in parts]
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(ROOT)
    left = check(ROOT)
    sys.stdout.writelines(f"{line}\n" for line in left)
    sys.exit(1 if left else 0)
