"""The Django app of scoring."""

from django.apps import AppConfig


class ScoringConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.scoring"
    label = "scoring"
