"""`python -m checks`: every check that is not a test. Each answers with problems that say where and what to do."""
