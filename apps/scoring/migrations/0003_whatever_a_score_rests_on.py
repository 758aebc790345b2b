"""Note by triggers the rest of what scores rest on.

A trace that comes to another task, and every trace of a task that gets another name, is
scored again: outcomes are expected by the name of the task. A trace without a task that
goes, and an agent that gets another name, are noted under task 0, which no task has:
only the verdicts are settled again.
"""

from __future__ import annotations

from django.db import migrations

FORWARDS = """
CREATE OR REPLACE FUNCTION scoring_note_stale_tasks() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO scoring_staletask (project_id, task_id)
        SELECT DISTINCT project_id, task_id FROM new_rows WHERE task_id IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO scoring_staletask (project_id, task_id)
        SELECT DISTINCT project_id, coalesce(task_id, 0) FROM old_rows
        WHERE task_id IS NOT NULL OR scored_as <> '';
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
        INSERT INTO scoring_staletrace (project_id, trace_id)
        SELECT n.project_id, n.id FROM old_rows o JOIN new_rows n USING (id)
        WHERE n.scored_as <> '' AND o.task_id IS DISTINCT FROM n.task_id;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION scoring_note_renamed_task() RETURNS trigger AS $$
BEGIN
    INSERT INTO scoring_staletrace (project_id, trace_id)
    SELECT project_id, id FROM traces_trace
    WHERE task_id = NEW.id AND scored_as <> '';
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER scoring_tasks_renamed AFTER UPDATE OF key ON traces_task
    FOR EACH ROW WHEN (OLD.key IS DISTINCT FROM NEW.key)
    EXECUTE FUNCTION scoring_note_renamed_task();

CREATE FUNCTION scoring_note_renamed_agent() RETURNS trigger AS $$
BEGIN
    INSERT INTO scoring_staletask (project_id, task_id) VALUES (NEW.project_id, 0);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER scoring_agents_renamed AFTER UPDATE OF name ON agents_agent
    FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name)
    EXECUTE FUNCTION scoring_note_renamed_agent();
"""

BACKWARDS = """
DROP TRIGGER scoring_agents_renamed ON agents_agent;
DROP FUNCTION scoring_note_renamed_agent();
DROP TRIGGER scoring_tasks_renamed ON traces_task;
DROP FUNCTION scoring_note_renamed_task();
"""


class Migration(migrations.Migration):
    """Replaces one function of triggers and adds two triggers."""

    dependencies = [
        ("scoring", "0002_stale_tasks"),
        ("agents", "0002_definitions_are_append_only"),
    ]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
