"""The state of a run for lists: one that cannot be read must not take the other rows off the page."""

from runs.engine.state import RunState
from runs.models import Run


def believed(run: Run) -> RunState | None:
    """What the host believes about the run; None if the stored text cannot be read here (other code, or damage)."""
    try:
        return run.picture
    except ValueError:
        return None
