"""The only writer of runs: append, lease, gate, chain."""
