"""Only a review signal enters the queue, and blind looks have a history that stays."""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION review_only_review_signals_are_queued() RETURNS trigger AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM screening_screening
        WHERE id = NEW.screening_id
            AND answer = 'signal' AND level = 'review_signal'
    ) THEN
        RAISE EXCEPTION 'Only an answer of the level review signal enters the queue.'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER review_only_review_signals_are_queued
    BEFORE INSERT OR UPDATE OF screening_id ON review_signal
    FOR EACH ROW EXECUTE FUNCTION review_only_review_signals_are_queued();
CREATE TRIGGER review_blind_history_is_append_only
    BEFORE UPDATE OR DELETE ON review_blindentry
    FOR EACH ROW EXECUTE FUNCTION review_history_is_append_only();
-- Until the next screening corrects them: a fact stands at 5 %, the rest at its chance.
UPDATE review_signal SET rank = chance;
"""

BACKWARDS = """
DROP TRIGGER review_only_review_signals_are_queued ON review_signal;
DROP FUNCTION review_only_review_signals_are_queued();
DROP TRIGGER review_blind_history_is_append_only ON review_blindentry;
"""


class Migration(migrations.Migration):
    """Adds two triggers and gives the signals that are here their place."""

    dependencies = [
        ("review", "0005_adoption_and_blind_looks"),
        ("screening", "0003_line_ups"),
    ]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
