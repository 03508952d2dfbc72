"""The record as a whole: checkpoints over all runs and the configuration, heads outside the database, safe mode."""
