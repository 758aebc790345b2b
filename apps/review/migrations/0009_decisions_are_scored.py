"""Note by a trigger which traces are to be scored again: those whose signal was decided.

A confirmed signal is a finding, and findings count in the verdicts of agents.
"""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION review_note_stale_trace() RETURNS trigger AS $$
BEGIN
    INSERT INTO scoring_staletrace (project_id, trace_id)
    VALUES (NEW.project_id, NEW.trace_id);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER review_decisions_are_scored AFTER UPDATE OF verdict ON review_signal
    FOR EACH ROW WHEN (
        OLD.verdict IS DISTINCT FROM NEW.verdict
        AND 'confirm' IN (OLD.verdict, NEW.verdict)
    )
    EXECUTE FUNCTION review_note_stale_trace();
"""

BACKWARDS = """
DROP TRIGGER review_decisions_are_scored ON review_signal;
DROP FUNCTION review_note_stale_trace();
"""


class Migration(migrations.Migration):
    """Adds one trigger."""

    dependencies = [
        ("review", "0008_masked_signals"),
        ("scoring", "0002_stale_tasks"),
    ]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
