"""Refuse to change a frozen report; only its project's end removes it."""

from django.db import migrations

FORWARDS = """
CREATE FUNCTION reports_report_is_frozen() RETURNS trigger AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF current_setting('evalsite.erasing', true) = 'yes' THEN
            RETURN OLD;
        END IF;
    ELSIF NEW.created_by_id IS NULL AND OLD.created_by_id IS NOT NULL
        AND (to_jsonb(NEW) - 'created_by_id') = (to_jsonb(OLD) - 'created_by_id') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'A frozen report does not change.'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$ LANGUAGE plpgsql;
CREATE TRIGGER reports_report_is_frozen
    BEFORE UPDATE OR DELETE ON reports_report
    FOR EACH ROW EXECUTE FUNCTION reports_report_is_frozen();
"""

BACKWARDS = """
DROP TRIGGER reports_report_is_frozen ON reports_report;
DROP FUNCTION reports_report_is_frozen();
"""


class Migration(migrations.Migration):
    dependencies = [("reports", "0001_initial")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
