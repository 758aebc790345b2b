"""Note by triggers which tasks are to be scored again: whoever changes their traces.

A task is noted when a trace comes to it or leaves it, and when what the score rests on
changes: the trial, the outcome, or the score of the trace itself. Rows are only added,
so no writer of traces waits for another.
"""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE FUNCTION scoring_note_stale_tasks() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO scoring_staletask (project_id, task_id)
        SELECT DISTINCT project_id, task_id FROM new_rows WHERE task_id IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO scoring_staletask (project_id, task_id)
        SELECT DISTINCT project_id, task_id FROM old_rows WHERE task_id IS NOT NULL;
    ELSE
        INSERT INTO scoring_staletask (project_id, task_id)
        SELECT DISTINCT project_id, task_id FROM (
            SELECT o.project_id, o.task_id AS before, n.task_id AS after
            FROM old_rows o JOIN new_rows n USING (id)
            WHERE (o.task_id, o.trial, o.outcome, o.outcome_score, o.outcome_out_of,
                   o.scored_as)
                IS DISTINCT FROM
                  (n.task_id, n.trial, n.outcome, n.outcome_score, n.outcome_out_of,
                   n.scored_as)
        ) changed CROSS JOIN LATERAL (VALUES (before), (after)) tasks (task_id)
        WHERE tasks.task_id IS NOT NULL;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER scoring_traces_came AFTER INSERT ON traces_trace
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION scoring_note_stale_tasks();
CREATE TRIGGER scoring_traces_changed AFTER UPDATE ON traces_trace
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION scoring_note_stale_tasks();
CREATE TRIGGER scoring_traces_went AFTER DELETE ON traces_trace
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION scoring_note_stale_tasks();
"""

BACKWARDS = """
DROP TRIGGER scoring_traces_came ON traces_trace;
DROP TRIGGER scoring_traces_changed ON traces_trace;
DROP TRIGGER scoring_traces_went ON traces_trace;
DROP FUNCTION scoring_note_stale_tasks();
"""


class Migration(migrations.Migration):
    """Adds three triggers on the traces."""

    dependencies = [("scoring", "0001_initial"), ("traces", "0011_scored_as")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
