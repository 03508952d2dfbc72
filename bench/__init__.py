"""Measurements whose goals are ratios: `python -m bench NAME [--json]`; without a name all of them."""
