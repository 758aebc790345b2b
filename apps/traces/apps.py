"""The Django app of traces."""

from django.apps import AppConfig


class TracesConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.traces"
    label = "traces"
