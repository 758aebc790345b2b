"""The Django app of agents."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.agents"
    label = "agents"
