"""Programs of others, each in a process of its own with the environment `.venv-bench`."""
