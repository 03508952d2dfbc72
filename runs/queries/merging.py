"""Two admins changed the same version: what each did, and a draft that keeps both where they do not clash."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.queries.policies import SWITCH, VERDICT, by_id, sentence
from runs.queries.words import RISK

Key = tuple[str, str]  # default, risk, off or rule; and the tool or the rule
Flat = dict[Key, Any]


@dataclass(frozen=True)
class Difference:
    """One thing as it was, as the other made it, as you made it. `clash`: both changed it, and not to the same."""

    subject: str
    what: str
    was: str
    theirs: str
    mine: str
    clash: bool
    by_them: bool
    by_me: bool


def merge(
    base: Mapping[str, Any], theirs: Mapping[str, Any], mine: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Difference]]:
    """A draft on top of `theirs` that carries what `mine` changed against `base`, and every difference, clashes first.

    Where both changed a thing the draft has yours: it is named, and nothing is published before you look again.
    """
    was, others, own = flat(base), flat(theirs), flat(mine)
    merged, found = dict(others), []
    for key in sorted({*was, *others, *own}):
        old, other, new = was.get(key), others.get(key), own.get(key)
        by_them, by_me = other != old, new != old
        if by_me:
            merged[key] = new
        if by_them or by_me:
            told = _words(key, old), _words(key, other), _words(key, new)
            clash = by_them and by_me and other != new
            found.append(Difference(_subject(key), _what(key), *told, clash, by_them, by_me))
    return unflat(merged, theirs), sorted(found, key=lambda one: not one.clash)


def flat(content: Mapping[str, Any]) -> Flat:
    """A content as single things that can be compared one by one."""
    found: Flat = {("default", tool): verdict for tool, verdict in content.get("defaults", {}).items()}
    found |= {("risk", tool): level for tool, level in content.get("risk", {}).items()}
    found |= {("off", tool): True for tool in content.get("off", [])}
    return found | {("rule", name): rule for name, rule in by_id(content).items()}


def unflat(things: Flat, like: Mapping[str, Any]) -> dict[str, Any]:
    """The content of these things; rules keep the order that they have in `like`, new ones follow."""
    part = {kind: {name: value for (of, name), value in things.items() if of == kind and value} for kind in
            ("default", "risk", "off", "rule")}  # fmt: skip
    order = [*by_id(like), *(name for name in part["rule"] if name not in by_id(like))]
    return {
        "defaults": part["default"], "risk": part["risk"], "off": list(part["off"]),
        "rules": [part["rule"][name] for name in order if name in part["rule"]],
    }  # fmt: skip


def _subject(key: Key) -> str:
    return _("every tool") if key == ("off", "*") else key[1]


def _what(key: Key) -> str:
    names = {
        "default": _("verdict where no rule matches"),
        "risk": _("risk"),
        "off": _("kill switch"),
        "rule": _("rule"),
    }
    return names[key[0]]


def _words(key: Key, value: Any) -> str:
    match key[0]:
        case "default":
            return str(VERDICT[value or "ask"].word)
        case "risk":
            return str(RISK[value]) if value else _("as the tool says")
        case "off":
            return str(SWITCH[bool(value)].word)
    return sentence(value) if value else _("no such rule")
