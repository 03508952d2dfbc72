"""Named places where a test may kill, freeze or break this process. Does nothing unless the environment says so.

``AGENTOPS_FAULT=name[:action[:nth]]`` with action kill (default), stop or raise; nth counts from 1. A file named by
``AGENTOPS_FAULT_LOG`` gets a line before the fault fires, so that a test can count hits.
"""

import os
import signal
from collections.abc import Callable

_NAME, _ACTION, _NTH = [*os.environ.get("AGENTOPS_FAULT", "").split(":"), "", ""][:3]
_passed = 0
# A simulation listens here and may raise what nothing catches; else None.
listener: Callable[[str], None] | None = None


def faultpoint(name: str) -> None:
    """Fire the fault that the environment names for this place."""
    global _passed
    if listener is not None:
        listener(name)
    if name != _NAME:
        return
    _passed += 1
    if _passed != int(_NTH or 1):
        return
    if log := os.environ.get("AGENTOPS_FAULT_LOG"):
        with open(log, "a") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())
    if _ACTION == "raise":
        raise RuntimeError(f"fault at {name}")
    # raised in this very thread: sent to the process, another thread might take it, and this one run on for a while
    signal.raise_signal(signal.SIGSTOP if _ACTION == "stop" else signal.SIGKILL)
