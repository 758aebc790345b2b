"""The Celery application: a wake-up for work whose truth lies in PostgreSQL."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

app = Celery("evalsite")
app.config_from_object("evalsite.celery_settings")
app.autodiscover_tasks(["apps.pipeline"])
