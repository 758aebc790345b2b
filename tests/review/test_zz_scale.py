import time, pytest
from django.db import connection
from apps.review.calibration import *
from apps.screening.calibration import *
from apps.screening.lineup import lineup_of
from tests.factories import upload_traces, decay_trace, NOW
def test_scale_of_pages(project, web_=None):
    upload_traces(project, decay_trace(100,90,80,70,60), decay_trace(50,60,55,58,61,name="b"), name="a.jsonl")
    with connection.cursor() as c:
        c.execute("SELECT column_name FROM information_schema.columns WHERE table_name='traces_trace' ORDER BY ordinal_position")
        cols=[r[0] for r in c.fetchall() if r[0] not in ("id","ordinal","native_id","metadata")]
        cl=",".join('"%s"'%x for x in cols)
        c.execute(f"INSERT INTO traces_trace (ordinal, native_id, metadata, {cl}) SELECT 1000+2*g+ordinal, NULL, jsonb_build_object('domain','d'||(g%%7)), {cl} FROM traces_trace, generate_series(1,25000) g".replace('%%','%'))
        c.execute("SELECT column_name FROM information_schema.columns WHERE table_name='screening_screening' ORDER BY ordinal_position")
        cols=[r[0] for r in c.fetchall() if r[0] not in ("id","trace_id")]
        cl=",".join('"%s"'%x for x in cols); sl=",".join('s."%s"'%x for x in cols)
        c.execute(f"INSERT INTO screening_screening (trace_id,{cl}) SELECT t.id, {sl} FROM traces_trace t JOIN traces_trace o ON o.name=t.name AND o.ordinal<1000 JOIN screening_screening s ON s.trace_id=o.id WHERE t.ordinal>1000")
        c.execute("ANALYZE"); c.execute("select count(*) from screening_screening"); print("answers", c.fetchone())
    lineup=lineup_of(project.pk)
    keys=[e.key for e in lineup.entries]; key=[k for k in keys if k[0]=="output-decay"]
    def t(name,f):
        b=time.perf_counter(); f(); print(name, round(time.perf_counter()-b,3))
    for _ in range(2):
        t("keys", lambda: keys_that_answered(project=project, check_slug="output-decay"))
        t("rates", lambda: rates_of(project=project, keys=key))
        t("outcomes", lambda: outcomes_of(project=project, key=key[0]))
        t("said", lambda: said_of(project=project, keys=key, kinds=list(GroupKind)))
        t("blind", lambda: blind_counts(project=project, keys=key))
        t("truths", lambda: truths_of(project=project, key=key[0]))
        t("named", lambda: named_steps(project=project, key=key[0]))
        t("blind all", lambda: blind_counts(project=project, keys=keys, only_looks=True))
        t("said all", lambda: said_of(project=project, keys=keys))
