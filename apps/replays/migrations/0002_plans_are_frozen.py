"""Versions, stub calls and cases are only added, and the database says so."""

from django.db import migrations

FORWARDS = """
CREATE FUNCTION replays_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Rows of % are only added.', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER replays_versions_are_append_only
    BEFORE UPDATE OF target_id, number, settings, created_at ON replays_targetversion
    FOR EACH ROW EXECUTE FUNCTION replays_refuse_change();
CREATE TRIGGER replays_stub_calls_are_append_only BEFORE UPDATE ON replays_stubcall
    FOR EACH ROW EXECUTE FUNCTION replays_refuse_change();
CREATE TRIGGER replays_cases_are_frozen
    BEFORE UPDATE OF agent_id, content, hash ON replays_replaycase
    FOR EACH ROW WHEN (
        OLD.content IS DISTINCT FROM NEW.content OR OLD.hash <> NEW.hash
        OR OLD.agent_id <> NEW.agent_id
    ) EXECUTE FUNCTION replays_refuse_change();
CREATE TRIGGER replays_plans_are_frozen
    BEFORE UPDATE OF plan, estimate, target_version_id ON replays_batch
    FOR EACH ROW WHEN (
        OLD.plan <> NEW.plan OR OLD.estimate <> NEW.estimate
        OR OLD.target_version_id <> NEW.target_version_id
    ) EXECUTE FUNCTION replays_refuse_change();
"""
BACKWARDS = """
DROP TRIGGER replays_plans_are_frozen ON replays_batch;
DROP TRIGGER replays_cases_are_frozen ON replays_replaycase;
DROP TRIGGER replays_stub_calls_are_append_only ON replays_stubcall;
DROP TRIGGER replays_versions_are_append_only ON replays_targetversion;
DROP FUNCTION replays_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("replays", "0001_initial")]

    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
