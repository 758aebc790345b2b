"""The site as a Django app: its commands, and the Celery application behind tasks."""

from django.apps import AppConfig

from evalsite.celery import app as celery_app


class EvalsiteConfig(AppConfig):
    """Makes the Celery application the current one in every process of the site."""

    name = "evalsite"
    celery = celery_app
