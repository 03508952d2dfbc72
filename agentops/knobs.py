"""Reading one variable: its value, or a refusal that names the variable and says what it wants."""

from __future__ import annotations

import importlib.util
import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
env = environ.Env()


def knob(name: str, default: T, cast: Callable[[str], T], wants: str) -> T:
    """The variable's value, or a refusal that names the variable and what it wants."""
    raw = env.str(name, default="").strip()
    if not raw:
        return default
    try:
        return cast(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r} is wrong: it wants {wants}") from None


def seconds(name: str, default: float) -> float:
    """A positive number of seconds."""

    def positive(raw: str) -> float:
        value = float(raw)
        if not 0 < value < 1_000_000:
            raise ValueError
        return value

    return knob(name, default, positive, f"a positive number of seconds, for example {default:g}")


def between(name: str, default: int, low: int, high: int) -> int:
    """A whole number inside its bounds."""

    def bounded(raw: str) -> int:
        value = int(raw)
        if not low <= value <= high:
            raise ValueError
        return value

    return knob(name, default, bounded, f"a whole number from {low} to {high}")


def delays(raw: str) -> tuple[float, ...]:
    """Growing delays of at most four looks (a fifth belongs to a person)."""
    given = tuple(float(part) for part in raw.split(","))
    if len(given) > 4 or list(given) != sorted(given) or given[0] < 0:
        raise ValueError
    return given


def folder(name: str, default: Path) -> Path:
    """An absolute path; whether it can be written shows when it is, and then as trouble and not as a refusal."""

    def absolute(raw: str) -> Path:
        path = Path(raw).expanduser()
        if not path.is_absolute():
            raise ValueError
        return path

    return knob(name, default, absolute, "the absolute path of a folder")


def api_url(name: str) -> str:
    """The address of an API that is sent a key, or "": never in the clear over a network, and no secret in it."""
    raw = env.str(name, default="").strip()
    parts = urlsplit(raw)
    clear = parts.scheme == "http" and is_loopback(parts.hostname or "")
    fits = (parts.scheme == "https" or clear) and parts.hostname and not (parts.username or parts.query)
    if raw and not fits:
        raise ImproperlyConfigured(f"{name} is wrong: it wants https://host[/path]; plain http on this machine only")
    return raw.rstrip("/")


def key_file(raw: str) -> str:
    """A file whose content is long enough for a key; only its place is kept in the settings."""
    try:
        if len(Path(raw).read_bytes().strip()) < 32:
            raise ValueError
    except OSError as error:
        raise ImproperlyConfigured(f"the key file {raw} cannot be read ({error.strerror})") from None
    return raw


def packages(raw: str) -> tuple[str, ...]:
    """Names of importable packages: a mistyped one must stop the start, not silently offer no tools."""
    names = tuple(part.strip() for part in raw.split(",") if part.strip())
    for name in names:
        try:
            found = re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name) and importlib.util.find_spec(name)
        except ImportError:
            found = None
        if not found:
            raise ImproperlyConfigured(
                f"AGENTOPS_TOOLS names {name!r}, which cannot be imported: install it or correct the name"
            )
    return names


def catalogues(names: tuple[str, ...]) -> list[Path]:
    """The folders `locale` of packages that have one."""
    specs = (importlib.util.find_spec(name) for name in names)
    places = (Path(place) / "locale" for spec in specs if spec for place in spec.submodule_search_locations or ())
    return [place for place in places if place.is_dir()]


def is_loopback(host: str) -> bool:
    """Whether a host name can only mean this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
