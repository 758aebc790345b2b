"""The Django app of live."""

from django.apps import AppConfig


class LiveConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.live"
    label = "live"
