"""The Django app of pipeline."""

from django.apps import AppConfig


class PipelineConfig(AppConfig):
    """Registers the app under its name in the house."""

    name = "apps.pipeline"
    label = "pipeline"
