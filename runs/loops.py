"""One event loop in a thread of its own, for sending from synchronous code.

`async_to_sync` per event costs as much as a whole durable step (performance.md 4), so workers keep one loop.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_soon(coroutine: Coroutine[Any, Any, Any], seconds: float | None = 5) -> None:
    """Run a coroutine on the sending loop and do not wait; a failure is logged and costs a hint."""
    asyncio.run_coroutine_threadsafe(_quietly(coroutine, seconds), _sending_loop())


async def _quietly(coroutine: Coroutine[Any, Any, Any], seconds: float | None) -> None:
    try:
        await asyncio.wait_for(coroutine, seconds)
    except Exception as error:
        log.warning("a hint was lost: %s", error)


def _sending_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, daemon=True, name="sending-loop").start()
        return _loop


def run_now(coroutine: Coroutine[Any, Any, Any], seconds: float) -> Any:
    """Run a coroutine on the sending loop and wait for what it gives. Raises what it raises, and `TimeoutError`."""
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, seconds), _sending_loop()).result()
