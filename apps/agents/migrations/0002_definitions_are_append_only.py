"""Refuse to change what was asked of an agent: a change is a row of its own."""

from __future__ import annotations

from django.db import migrations

TABLES = {
    "agents_agentdefinition": "created_by_id",
    "agents_outcomedefinition": "created_by_id",
    "agents_namechange": "changed_by_id",
}

FORWARDS = """
CREATE FUNCTION agents_is_append_only() RETURNS trigger AS $$
BEGIN
    -- Removing a user's account keeps what was written, without the name.
    IF to_jsonb(NEW) ->> TG_ARGV[0] IS NULL
        AND (to_jsonb(NEW) - TG_ARGV[0]) = (to_jsonb(OLD) - TG_ARGV[0]) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'What was asked of an agent is append-only.'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$ LANGUAGE plpgsql;
""" + "".join(
    f"""
CREATE TRIGGER {table}_is_append_only BEFORE UPDATE ON {table}
    FOR EACH ROW EXECUTE FUNCTION agents_is_append_only('{by}');
"""
    for table, by in TABLES.items()
)

BACKWARDS = (
    "".join(
        f"DROP TRIGGER {table}_is_append_only ON {table};\n" for table in TABLES
    )
    + "DROP FUNCTION agents_is_append_only();"
)


class Migration(migrations.Migration):
    """Adds three triggers."""

    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
