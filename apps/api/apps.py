"""The Django app of api."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.api"
    label = "api"
