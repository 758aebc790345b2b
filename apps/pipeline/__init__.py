"""What follows what; the only Celery tasks."""
