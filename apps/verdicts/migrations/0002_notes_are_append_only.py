"""Refuse to change what a reviewer noted of a trial: a change is a row of its own."""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION verdicts_note_is_append_only() RETURNS trigger AS $$
BEGIN
    -- Removing a user's account keeps what was noted, without the name.
    IF NEW.noted_by_id IS NULL
        AND (to_jsonb(NEW) - 'noted_by_id') = (to_jsonb(OLD) - 'noted_by_id') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'What was noted of a trial is append-only.'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER verdicts_note_is_append_only BEFORE UPDATE ON verdicts_trialnote
    FOR EACH ROW EXECUTE FUNCTION verdicts_note_is_append_only();
"""

BACKWARDS = """
DROP TRIGGER verdicts_note_is_append_only ON verdicts_trialnote;
DROP FUNCTION verdicts_note_is_append_only();
"""


class Migration(migrations.Migration):
    """Adds one trigger."""

    dependencies = [("verdicts", "0001_initial")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
