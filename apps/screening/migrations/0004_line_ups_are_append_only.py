"""Refuse to change what was adopted or defined: a change is a row of its own."""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION screening_line_up_is_append_only() RETURNS trigger AS $$
BEGIN
    -- Removing a user's account keeps what was chosen, without the name.
    IF to_jsonb(NEW) ->> TG_ARGV[0] IS NULL
        AND (to_jsonb(NEW) - TG_ARGV[0]) = (to_jsonb(OLD) - TG_ARGV[0]) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'What was adopted or defined is append-only.'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER screening_adoption_is_append_only
    BEFORE UPDATE ON screening_adoption
    FOR EACH ROW EXECUTE FUNCTION screening_line_up_is_append_only('adopted_by_id');
CREATE TRIGGER screening_definition_is_append_only
    BEFORE UPDATE ON screening_definition
    FOR EACH ROW EXECUTE FUNCTION screening_line_up_is_append_only('created_by_id');
"""

BACKWARDS = """
DROP TRIGGER screening_adoption_is_append_only ON screening_adoption;
DROP TRIGGER screening_definition_is_append_only ON screening_definition;
DROP FUNCTION screening_line_up_is_append_only();
"""


class Migration(migrations.Migration):
    """Adds two triggers."""

    dependencies = [("screening", "0003_line_ups")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
