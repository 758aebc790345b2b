"""The Django app of accounts."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.accounts"
    label = "accounts"
