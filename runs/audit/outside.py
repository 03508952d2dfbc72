"""The file outside the database: one checkpoint a line, only ever added to, and signed where a key is given.

Each sweeper keeps its own, complete from the first checkpoint on; on several machines that is as many witnesses.
"""

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from django.conf import settings

from runs.audit.checkpoints import Line
from runs.models import Checkpoint

BLOCK = 65536


class BadLine(ValueError):
    """A line cannot be read; the message names it."""


def place() -> Path:
    """The file of this installation: a database that was made anew has another first checkpoint, and another file."""
    first = Checkpoint.objects.get(number=0)
    return Path(settings.AGENTOPS_HEADS) / f"heads-{bytes(first.hash).hex()[:16]}.jsonl"


def key() -> bytes:
    """The key that signs lines; empty if none is set. Raises `OSError` if its file cannot be read."""
    return Path(settings.AGENTOPS_HEADS_KEY).read_bytes().strip() if settings.AGENTOPS_HEADS_KEY else b""


def signed(line: Line, secret: bytes) -> Line:
    """The line with its signature, HMAC-SHA256 of its hash; unsigned without a key."""
    return replace(line, signature=signature(line, secret)) if secret else line


def signature(line: Line, secret: bytes) -> str:
    """What a line's signature has to be, in hex."""
    return hmac.new(secret, line.hash.encode(), hashlib.sha256).hexdigest()


def lines(path: Path) -> Iterator[Line]:
    """All whole lines in their order; one without its end was being written when its process died, and is not there.

    Raises `BadLine`, and `OSError` if the file is not there.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.endswith(b"\n"):
                yield parsed(raw, f"line {number}")


def parsed(raw: bytes, name: str) -> Line:
    """The line of these bytes. Raises `BadLine`."""
    try:
        return Line(**json.loads(raw))
    except (ValueError, TypeError) as error:
        raise BadLine(f"{name} of the heads outside cannot be read: {error}") from error


def tail(path: Path) -> Line | None:
    """The last whole line, read from the end; None if the file has none or is not there. Raises `BadLine`."""
    try:
        with path.open("rb") as file:
            return _last(file)
    except FileNotFoundError:
        return None


def _last(file: IO[bytes]) -> Line | None:
    end, found = file.seek(0, os.SEEK_END), b""
    while end and found.count(b"\n") < 2:
        begin = max(0, end - BLOCK)
        file.seek(begin)
        found, end = file.read(end - begin) + found, begin
    whole = found[: found.rfind(b"\n") + 1].splitlines()
    return parsed(whole[-1], "the last line") if whole else None


@contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """The file, open for adding, and nobody else's meanwhile; a torn last line is taken away. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _untorn(file)
        yield file


def _untorn(file: IO[bytes]) -> None:
    """Cut a line without its end: it never counted, and what comes next must not be glued to it."""
    end = position = file.seek(0, os.SEEK_END)
    while position:
        begin = max(0, position - BLOCK)
        file.seek(begin)
        if (found := file.read(position - begin).rfind(b"\n")) >= 0:
            position = begin + found + 1
            break
        position = begin
    if position != end:
        file.truncate(position)


def write(file: IO[bytes], more: Iterable[Line]) -> None:
    """Add lines and wait until the disk has them. Raises `OSError`."""
    file.seek(0, os.SEEK_END)
    for line in more:
        kept = {name: value for name, value in asdict(line).items() if value not in (None, "")}
        file.write(json.dumps({"previous": "", **kept}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())
