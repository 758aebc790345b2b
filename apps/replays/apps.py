"""The Django app of replays."""

from django.apps import AppConfig


class ReplaysConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.replays"
    label = "replays"
