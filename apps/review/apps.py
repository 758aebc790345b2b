"""The Django app of review."""

from django.apps import AppConfig


class ReviewConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.review"
    label = "review"
