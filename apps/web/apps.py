"""The Django app of web."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.web"
    label = "web"
