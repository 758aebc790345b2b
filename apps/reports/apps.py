"""The Django app of reports."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.reports"
    label = "reports"
