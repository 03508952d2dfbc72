"""The pure core: no Django, no I/O, no clock, no randomness."""
