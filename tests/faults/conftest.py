"""Faults happen in the same house as stories."""

from tests.stories.conftest import house, the_house

__all__ = ["house", "the_house"]
