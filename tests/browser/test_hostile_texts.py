from __future__ import annotations

import itertools
from urllib.parse import urlsplit

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)
from apps.reports.models import Report
from apps.reports.operations import freeze
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.queries import QueueFilter
from apps.review.transitions import Verdict
from tests.browser.scenes import upload_and_read
from tests.factories import SECOND, START, make_project, make_user, usage

ELSEWHERE = "attacker.example"
_numbers = itertools.count(1)


def hostile(what: str) -> str:
    """A text that would call `pwn` or load something if it were ever active."""
    number = next(_numbers)
    forms = (
        f"<script>pwn('{what}{number}')</script>",
        f"<img src=x onerror=pwn('{what}{number}')>",
        f"</script><script>pwn('{what}{number}')</script>",
        f"\"><svg onload=pwn('{what}{number}')>",
        f"<img src=http://{ELSEWHERE}/{what}{number}>",
        f"<a href=javascript:pwn('{what}{number}')>x</a>{{{{ 7|add:7 }}}}",
    )
    return forms[number % len(forms)]


def everywhere(what: str) -> dict[str, str]:
    return {hostile(f"{what}-key"): hostile(what) for _ in range(6)}


def model_step(seq: int, tokens: int) -> Step:
    return Step(
        seq=seq,
        kind=StepKind.MODEL_CALL,
        invocation=0,
        name=hostile("step"),
        start_ns=START + seq * SECOND,
        end_ns=START + seq * SECOND + 1,
        status=StepStatus.ERROR if seq == 0 else StepStatus.OK,
        error_type=hostile("error-type"),
        error_message=hostile("error"),
        native_id=hostile("native"),
        native_kind=hostile("native-kind"),
        call=ModelCall(
            provider="<b>provider</b>",
            model="<img src=x onerror=pwn('model')>",
            finish_raw=hostile("finish"),
            usage=usage(tokens),
            conversation="<b>one</b>",
        ),
        body=Body(
            input=[{"role": hostile("role"), "content": hostile("input")}],
            output=" ".join(hostile("output") for _ in range(6)),
            reasoning=hostile("reasoning"),
            attributes=everywhere("attribute"),
        ),
    )


def tool_step(seq: int, name: str) -> Step:
    return Step(
        seq=seq,
        kind=StepKind.TOOL_CALL,
        invocation=0,
        start_ns=START + seq * SECOND,
        end_ns=START + seq * SECOND + 1,
        call=ToolCall(name=name, call_id=hostile("call")),
        body=Body(input=everywhere("argument"), output=everywhere("result")),
    )


def hostile_trace() -> Trace:
    """It makes an output decay and a tool drift out of hostile names."""
    tools = [hostile("tool") for _ in range(5)]
    names = [*tools, *[tools[-1]] * 6]
    models = [
        model_step(seq, tokens)
        for seq, tokens in enumerate((400, 330, 260, 190, 120, 70))
    ]
    calls = [tool_step(len(models) + n, name) for n, name in enumerate(names)]
    return Trace(
        name=hostile("trace"),
        steps=(*models, *calls),
        invocations=(
            AgentInvocation(number=0, agent="<img src=x onerror=pwn('agent')>"),
        ),
        start_ns=START,
        session=hostile("session"),
        outcome=Outcome(
            kind=OutcomeKind.FAIL, label=hostile("outcome"), source=hostile("source")
        ),
        task=hostile("task"),
        trial=1,
        metadata=everywhere("metadata"),
        labels=everywhere("label"),
        notes=(hostile("note"),),
    )


@pytest.fixture(scope="module")
def hostile_project(site):
    owner = make_user()
    owner.first_name = "<script>pwn('user')</script>"
    owner.save()
    project = make_project(owner=owner, name="</title><script>pwn('project')</script>")
    now = timezone.now()
    name = "<img src=x onerror=pwn('file')>.jsonl"
    upload_and_read(project, dump(hostile_trace()), name=name)
    upload_and_read(
        project, f"{{{hostile('rejected')}\n".encode(), name=hostile("broken")
    )
    create_token(
        project=project, name=hostile("token"), scopes=list(Scope), user=owner, now=now
    )
    decided, *_ = Signal.objects.filter(project=project).order_by("pk")
    review.decide(
        signal_id=decided.pk,
        user=owner,
        base_version=decided.version,
        decision=review.DecisionInput(
            verdict=Verdict.CONFIRM, note=hostile("decision")
        ),
    )
    freeze(
        project=project,
        user=owner,
        title="</title><script>pwn('report')</script>",
        where=QueueFilter(view="all"),
        now=now,
    )
    return project


def pages_of(project) -> list[str]:
    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    return [
        reverse("projects"),
        reverse("account"),
        *map(of, ("overview", "uploads", "traces", "reports", "project-settings")),
        of("queue") + "?view=all",
        *(of("upload", upload.pk) for upload in project.upload_set.all()),
        *(of("trace", trace.pk) for trace in project.trace_set.all()),
        *(of("signal", signal.pk) for signal in Signal.objects.filter(project=project)),
        *(of("report", report.pk) for report in Report.objects.filter(project=project)),
    ]


def test_texts_of_traces_and_people_stay_texts_on_every_page(
    open_page, hostile_project
):
    owner = hostile_project.members.get()
    page = open_page(owner)
    page.on("dialog", lambda dialog: page.watch.problems.append("a dialog opened"))
    assert Signal.objects.filter(project=hostile_project).count() == 2
    for path in pages_of(hostile_project):
        page.goto(path)
        page.evaluate(
            "document.querySelectorAll('main details').forEach(d => { d.open = true })"
        )
        page.wait_for_load_state("networkidle")
        if page.locator("[data-chart]").count():
            expect(page.locator("[data-chart] svg.main-svg").first).to_be_visible()
            page.locator("[data-chart]").hover()
        assert page.evaluate("window.__pwned") == [], path
        assert page.locator("main script[src], main img, main iframe").count() == 0, (
            path
        )
        assert "pwn(" in page.locator("body").inner_text(), path
    hosts = {urlsplit(url).hostname for url in page.watch.requests}
    assert hosts == {"localhost"}


def test_the_hook_of_these_tests_notices_a_script_that_runs(open_page, owner):
    page = open_page(owner)
    page.goto(reverse("projects"))
    page.evaluate("pwn('made')")
    assert page.evaluate("window.__pwned") == ["made"]
    assert [p for p in page.watch.problems if "PWNED made" in p]
    page.watch.problems.clear()


def test_the_policy_stops_an_inline_script_and_says_so(open_page, owner):
    page = open_page(owner)
    page.goto(reverse("projects"))
    page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = "pwn('inline')";
          document.body.append(script);
        }"""
    )
    assert page.evaluate("window.__pwned") == []
    assert [p for p in page.watch.problems if "CSP" in p or "Content Security" in p]
    page.watch.problems.clear()
