"""Files that are read from the database while they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse


def as_file(request: Any, pieces: Iterator[str], kind: str, name: str) -> Any:
    """A file that is read from the database while it is sent: its size costs no memory."""
    content: Any = _from_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(content, content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


async def _from_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Piece by piece from a thread: the server's own loop would collect a plain iterator as a whole first."""
    following = database_sync_to_async(partial(next, pieces, None))
    while (piece := await following()) is not None:
        yield piece
