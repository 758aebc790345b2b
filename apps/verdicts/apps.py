"""The Django app of verdicts."""

from django.apps import AppConfig


class VerdictsConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.verdicts"
    label = "verdicts"
