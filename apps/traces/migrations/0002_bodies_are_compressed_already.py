"""Tell PostgreSQL not to compress what is compressed."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("traces", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE traces_bodychunk ALTER COLUMN data SET STORAGE EXTERNAL",
            "ALTER TABLE traces_bodychunk ALTER COLUMN data SET STORAGE EXTENDED",
        )
    ]
