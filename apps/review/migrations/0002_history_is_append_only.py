"""Refuse to change or remove a line of history; only its signal's end removes it."""

from django.db import migrations

FORWARDS = """
CREATE FUNCTION review_history_is_append_only() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        -- A line may go only together with its trace (an erased upload or project).
        IF current_setting('evalsite.erasing', true) = 'yes' THEN
            RETURN OLD;
        END IF;
    ELSIF NEW.by_id IS NULL AND OLD.by_id IS NOT NULL
        AND (to_jsonb(NEW) - 'by_id') = (to_jsonb(OLD) - 'by_id') THEN
        -- Removing a user's account keeps what was decided, without the name.
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'The history of a signal is append-only.'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER review_history_is_append_only
    BEFORE UPDATE OR DELETE ON review_historyentry
    FOR EACH ROW EXECUTE FUNCTION review_history_is_append_only();
"""

BACKWARDS = """
DROP TRIGGER review_history_is_append_only ON review_historyentry;
DROP FUNCTION review_history_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("review", "0001_initial")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
