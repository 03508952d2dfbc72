"""Start and end of a web process, as the ASGI server tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import connection

from runs.audit.witness import look_at_start
from runs.health import start_heart, stop_hearts


def look() -> None:
    """Compare with the heads outside, if they are in sight from here; the thread keeps no connection."""
    try:
        look_at_start()
    finally:
        connection.close()


class Lifespan:
    """Lets the heart beat only where a server runs: importing the application (tests, checks) starts nothing."""

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer the server's startup and shutdown messages."""
        while (await receive())["type"] == "lifespan.startup":
            await asyncio.to_thread(look)
            start_heart("web")
            await send({"type": "lifespan.startup.complete"})
        await asyncio.to_thread(stop_hearts)
        await send({"type": "lifespan.shutdown.complete"})
