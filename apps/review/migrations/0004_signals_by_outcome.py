"""An index for the queue of one outcome."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the index; nothing else changes."""

    dependencies = [("review", "0003_agent_names_as_read_are_kept")]

    operations = [
        migrations.AddIndex(
            model_name="signal",
            index=models.Index(
                fields=["project", "outcome", "state", "chance", "id"],
                name="signal_by_outcome",
            ),
        ),
    ]
