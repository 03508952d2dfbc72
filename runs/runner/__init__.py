"""advance(run): take the lease, do what `next_step` says until it waits. The only caller of tools and providers."""

from runs.runner.loop import advance

__all__ = ["advance"]
