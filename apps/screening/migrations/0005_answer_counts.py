"""Keep the counts of answers beside them, as a project of many traces has a million."""

from __future__ import annotations

from django.db import migrations, models

_KIND = (
    "project_id, check_slug, check_version, parameters_hash, answer, level, "
    "reason_code, chance_of_signal"
)

FORWARDS = f"""
CREATE FUNCTION screening_count_answers() RETURNS trigger AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO screening_answercount ({_KIND}, count)
        SELECT {_KIND}, count(*) FROM new_rows GROUP BY {_KIND};
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO screening_answercount ({_KIND}, count)
        SELECT {_KIND}, -count(*) FROM old_rows GROUP BY {_KIND};
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER screening_answers_came AFTER INSERT ON screening_screening
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION screening_count_answers();
CREATE TRIGGER screening_answers_changed AFTER UPDATE ON screening_screening
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION screening_count_answers();
CREATE TRIGGER screening_answers_went AFTER DELETE ON screening_screening
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION screening_count_answers();
INSERT INTO screening_answercount ({_KIND}, count)
SELECT {_KIND}, count(*) FROM screening_screening GROUP BY {_KIND};
"""  # noqa: S608 - no value comes from outside

BACKWARDS = """
DROP TRIGGER screening_answers_came ON screening_screening;
DROP TRIGGER screening_answers_changed ON screening_screening;
DROP TRIGGER screening_answers_went ON screening_screening;
DROP FUNCTION screening_count_answers();
"""


class Migration(migrations.Migration):
    """Adds a table of counts and the triggers that fill it, and counts what is there."""

    dependencies = [("screening", "0004_line_ups_are_append_only")]
    operations = [
        migrations.CreateModel(
            name="AnswerCount",
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
                ("project_id", models.BigIntegerField()),
                ("check_slug", models.CharField(max_length=40)),
                ("check_version", models.IntegerField()),
                ("parameters_hash", models.CharField(max_length=16)),
                ("answer", models.CharField(max_length=14)),
                ("level", models.CharField(max_length=13)),
                ("reason_code", models.CharField(max_length=40)),
                ("chance_of_signal", models.FloatField(null=True)),
                ("count", models.IntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project_id"], name="answer_count_project")
                ]
            },
        ),
        migrations.RunSQL(FORWARDS, BACKWARDS),
    ]
