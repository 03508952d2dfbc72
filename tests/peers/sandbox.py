"""A sandbox as small as it can be: a child process whose life is the life of its work.

The child asks for the effect over its own standard streams, and the effect is being done for exactly as long as the
child lives: `Sandbox.emptied` is set when nothing of it is left. Whoever kills the child and has waited for that may
say that nothing will happen any more.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future

CHILD = "import sys; print('now', flush=True); sys.exit(int(sys.stdin.readline() or 1))"


class Sandbox:
    """One child, which does one effect. Used from a thread; the effect is awaited on `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, effect: Callable[[], Awaitable[str]]) -> None:
        """Start the child; it begins at once."""
        self.loop, self.effect = loop, effect
        self.emptied = threading.Event()
        self.error: BaseException | None = None
        self.said = ""
        self.child = subprocess.Popen(
            [sys.executable, "-S", "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        """Do what the child asks for, while it lives."""
        assert self.child.stdin and self.child.stdout
        try:
            if self.child.stdout.readline():
                doing: Future[str] = asyncio.run_coroutine_threadsafe(self._while_it_lives(), self.loop)
                self.said = doing.result()
                self.child.communicate("0\n")
        except CancelledError:
            pass
        except BaseException as error:
            self.error = error
            self.child.kill()
        finally:
            self.child.wait()
            self.emptied.set()

    async def _while_it_lives(self) -> str:
        work = asyncio.ensure_future(self.effect())
        while not work.done() and self.child.poll() is None:
            await asyncio.wait([work], timeout=0.01)
        if not work.done():
            work.cancel()
        return await work

    def kill(self) -> bool:
        """Kill the child and wait until nothing of it is left; True if its work never came to its end."""
        self.child.kill()
        self.emptied.wait()
        return not self.said and self.error is None
