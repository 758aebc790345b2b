"""Checks over files without a database: what `manage.py screen` does and prints."""
