"""Note by a trigger the traces to which signals come after an agent is masked there.

A signal that comes with its trace is marked when that is scored; one that a later
line-up finds would stand as if nothing were masked.
"""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION review_note_masked_traces() RETURNS trigger AS $$
BEGIN
    INSERT INTO scoring_staletrace (project_id, trace_id)
    SELECT DISTINCT n.project_id, n.trace_id
    FROM new_rows n JOIN scoring_tracescore s USING (trace_id)
    WHERE s.masked > 0;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER review_signals_came AFTER INSERT ON review_signal
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION review_note_masked_traces();
"""

BACKWARDS = """
DROP TRIGGER review_signals_came ON review_signal;
DROP FUNCTION review_note_masked_traces();
"""


class Migration(migrations.Migration):
    """Adds one trigger."""

    dependencies = [("review", "0009_decisions_are_scored")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
