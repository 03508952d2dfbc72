"""`manage.py up`: everything that one machine needs, started in order and kept running."""
