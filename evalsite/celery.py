"""The Celery application: a wake-up for work whose truth lies in PostgreSQL."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init
from django.core.exceptions import ImproperlyConfigured

from evalsite.secret_key import require_lasting_key

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

app = Celery("evalsite")
app.config_from_object("evalsite.celery_settings")
app.autodiscover_tasks(["apps.pipeline"])


@worker_init.connect
@beat_init.connect
def refuse_passing_key(**_: Any) -> None:
    """Stop a worker or beat that has no lasting secret key, with one sentence.

    Not while this module is imported: every command imports it, and most need no key.
    Celery swallows every exception of a signal but SystemExit.
    """
    try:
        require_lasting_key()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from error
