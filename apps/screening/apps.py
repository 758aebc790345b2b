"""The Django app of screening."""

from django.apps import AppConfig


class ScreeningConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.screening"
    label = "screening"
