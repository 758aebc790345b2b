"""Drafts of decisions on blind looks."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the table of drafts."""

    dependencies = [
        ("review", "0006_levels_are_enforced"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="BlindDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("fields", models.JSONField(default=dict)),
                ("saved_at", models.DateTimeField()),
                (
                    "look",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to="review.blindlook",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("look", "user"), name="one_blind_draft_per_reviewer"
                    )
                ],
            },
        ),
    ]
