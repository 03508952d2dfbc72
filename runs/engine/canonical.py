"""Strict JSON, its canonical form (RFC 8785), digests and operation keys."""

import hashlib
import json
from collections import Counter
from typing import Any

import rfc8785

DEPTH = 32
LARGEST = 2**53 - 1
# Made once: `json.dumps` with options makes an encoder at every call.
compact = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


class BadJson(ValueError):
    """The text is not JSON that two parsers would read alike; the message says where and why."""


def strict_loads(text: str) -> Any:
    """Parse JSON, refusing what parsers read differently: repeated keys, NaN, huge numbers, deep nesting.

    Raises `BadJson`.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_integer, parse_float=_real
        )
    except RecursionError as error:
        raise BadJson(f"nested deeper than {DEPTH}") from error
    except json.JSONDecodeError as error:
        raise BadJson(f"not JSON: {error.msg} at character {error.pos}") from error
    _inspect(value)
    return value


def canonical(value: Any) -> str:
    """RFC 8785 text of a JSON value. Raises `BadJson` for what JSON cannot carry exactly."""
    try:
        return compact(value) if _is_simple(value) else rfc8785.dumps(value).decode()
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise BadJson(str(error)) from error


def to_json(value: Any) -> str:
    """JSON text that can be stored as UTF-8, whatever a model or a remote put into its strings."""
    text = json.dumps(value, ensure_ascii=False)
    return text if storable(text, len(text)) == text else json.dumps(value)


def storable(text: str, most: int = 500) -> str:
    """Text that both databases take: NUL and lone surrogates are replaced, what is beyond `most` is cut."""
    return text[:most].encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def digest(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, lower-case hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def operation_key(run: str, turn: int, ordinal: int, revision: int, definition: str, args: str) -> str:
    """Identity of one business effect: never of an attempt, so that a resend is recognised (DESIGN.md 2).

    `run` is the run's random uid: row numbers begin again in a restored or a second database.
    """
    return digest(canonical(["agentops/operation/v1", run, turn, ordinal, revision, definition, args]))


def action_digest(
    run: str, turn: int, ordinal: int, revision: int, definition: str, args: str, objects: list[str]
) -> str:
    """What an approval binds: this call at this revision, with these bytes, for these targets (DESIGN.md 7)."""
    return digest(canonical(["agentops/action/v1", run, turn, ordinal, revision, definition, args, objects]))


def _is_simple(value: Any) -> bool:
    """True for what Python's own encoder, ten times faster, writes as RFC 8785 says: ASCII, no fractions, no huge."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii())
    if kind is int:
        return bool(-LARGEST <= value <= LARGEST)
    if kind is dict:
        return all(type(key) is str and key.isascii() for key in value) and all(map(_is_simple, value.values()))
    if kind is list:
        return all(map(_is_simple, value))
    return kind is bool or value is None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, times in Counter(key for key, _ in pairs).items():
        if times > 1:
            raise BadJson(f"key {key!r} stands twice in one object")
    return dict(pairs)


def _refuse(name: str) -> Any:
    raise BadJson(f"{name} is not JSON")


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > LARGEST:
        raise BadJson(f"integer {text[:20]} is beyond 2**53 - 1")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if abs(value) > LARGEST:
        raise BadJson(f"number {text[:20]} is beyond 2**53 - 1")
    return value


def _inspect(value: Any, depth: int = 0) -> None:
    """Refuse deep nesting, and the one character that PostgreSQL cannot store."""
    if depth > DEPTH:
        raise BadJson(f"nested deeper than {DEPTH}")
    if isinstance(value, str) and "\0" in value:
        raise BadJson("a string holds the character NUL")
    if isinstance(value, dict | list):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _inspect(item, depth + 1)
