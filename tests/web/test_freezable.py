"""What a trace offers for freezing: only what can be, and else why it cannot."""

from __future__ import annotations

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.trace import AgentInvocation, Step, StepKind
from apps.replays import freezing
from apps.traces.models import Trace
from apps.web.pages.replay_freezing import ALL_OWNED, NO_ACTS, NO_STEPS
from tests.factories import model_call, trace_of, upload_traces
from tests.scored import scored
from tests.web.visiting import text, url

BUTTON = ">Freeze as a case<"


def of_agents(*names: str, idle: str = "", key: str = "a"):
    """A trace in which each agent asks a model once, and the idle one does nothing."""
    steps = [
        msgspec.structs.replace(model_call(seq, 10), invocation=seq)
        for seq in range(len(names))
    ]
    invocations = [
        AgentInvocation(number=number, agent=name) for number, name in enumerate(names)
    ]
    if idle:
        number = len(names)
        invocations.append(AgentInvocation(number=number, agent=idle))
        steps.append(Step(number, StepKind.USER_MESSAGE, invocation=number))
    made = trace_of(steps, name=key)
    return msgspec.structs.replace(made, invocations=tuple(invocations))


def part(web, project) -> str:
    page = text(web.get(url(project, "trace", Trace.objects.latest("pk").pk)))
    return page.split('id="freezing"')[1].split("</details>")[0]


def test_agents_that_the_project_does_not_know_yet_have_a_reason_and_no_button(
    web, project
):
    upload_traces(project, of_agents("triage"))
    shown = part(web, project)
    assert BUTTON not in shown
    assert "does not know “triage” as an agent yet" in shown
    assert "does not know what no named agent did as an agent yet" in shown


def test_an_agent_that_did_nothing_has_a_reason_and_the_others_a_button(web, project):
    upload_traces(project, of_agents("triage", "writer", idle="watcher"))
    scored(project)
    shown = part(web, project)
    assert shown.count(BUTTON) == 2
    assert NO_ACTS in shown
    assert ALL_OWNED in shown
    freeze = url(project, "trace-freeze", Trace.objects.get().pk)
    for offered, code in (("0", 302), ("1", 302), ("2", 400), ("", 400)):
        assert web.post(freeze, {"invocation": offered}).status_code == code


def test_what_no_agent_owns_is_offered_where_it_is_known(web, project):
    own = msgspec.structs.replace(model_call(0, 10), invocation=None)
    whole = msgspec.structs.replace(trace_of([own]), invocations=())
    upload_traces(project, whole)
    scored(project)
    assert part(web, project).count(BUTTON) == 1


@pytest.mark.parametrize("name", ["MOST_STEPS", "LARGEST"])
def test_a_trace_that_is_too_large_has_no_button_that_can_be_pressed(
    web, project, monkeypatch, name
):
    upload_traces(project, of_agents("triage"))
    scored(project)
    monkeypatch.setattr(freezing, name, 0)
    shown = part(web, project)
    assert shown.count('disabled title="It has more than') == shown.count(BUTTON)
    assert 'class="why-not">It has more than' in shown


def test_a_trace_without_steps_says_so(web, project):
    upload_traces(project, of_agents("triage"))
    scored(project)
    Trace.objects.update(step_count=0)
    assert NO_STEPS in part(web, project)


def test_more_invocations_ask_no_more_queries_and_the_rest_is_counted(web, project):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            part(web, project)
        return len(queries)

    upload_traces(project, of_agents("triage"))
    scored(project)
    few = asked()
    names = [f"agent {number}" for number in range(53)]
    upload_traces(project, of_agents(*names, key="b"))
    scored(project)
    asked()
    assert asked() <= few
    shown = part(web, project)
    assert shown.count(BUTTON) == 50
    assert "3 invocations more are not listed here" in shown
