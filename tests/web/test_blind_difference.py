"""A flagged run and the same run unflagged: nothing that a reviewer gets differs."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from apps.accounts.operations import set_blind_percent
from apps.accounts.permissions import Role
from apps.engine.checks import CHECKS
from apps.review.models import BlindLook, Signal
from apps.screening.models import Screening
from apps.traces.models import Trace
from tests.adopting import pause
from tests.factories import (
    decay_trace,
    make_member,
    make_project,
    upload_traces,
)
from tests.web.test_access import signed_in_as

FALLING = (100, 90, 80, 70, 60)

# What is new with each page, and what tells the two projects and their rows apart.
_PASSING = re.compile(
    r'name="csrfmiddlewaretoken" value="[^"]*"|csrf[-_]?token[^>]*|'
    r'name="submission" value="[^"]*"|"X-CSRFToken": "[^"]*"|'
    r'datetime="[^"]*"|title="[^"]*UTC[^"]*"|20\d\d-\d\d-\d\d[T ][\d:.+Z]*'
)


def run_in(name: str, *, flagged: bool):
    """A project whose only trace is looked at; with `flagged` its signal stands."""
    project = make_project(name=name)
    if not flagged:
        # As if no check had anything to say of the same run.
        for check in CHECKS:
            pause(project, check.slug, is_paused=True)
    set_blind_percent(project=project, percent=0)
    upload_traces(project, decay_trace(*FALLING, name="the run"))
    trace = Trace.objects.get(project=project)
    assert Signal.objects.filter(project=project).exists() is flagged
    BlindLook.objects.create(
        project=project,
        trace=trace,
        was_flagged=flagged,
        place=0.5,
        created_at=trace.upload.created_at,
    )
    return project, trace


def bare(answer, project, look, trace) -> str:
    """The status, address and text of an answer without what names this project."""
    content = answer.content.decode() + answer.get("Location", "")
    content = _PASSING.sub("~", content)
    content = content.replace(project.slug, "~project~").replace(
        project.name, "~project~"
    )
    content = re.sub(rf"/blind/{look.pk}/|blind-{look.pk}\b", "/blind/~/", content)
    content = re.sub(rf"/traces/{trace.pk}/", "/traces/~/", content)
    # How many signals are open is told on every page, whatever look is open.
    content = re.sub(r'<span class="n">\d*', '<span class="n">~', content)
    return f"{answer.status_code} {content}"


def seen_by_a_reviewer(project, trace) -> dict[str, str]:
    """Everything that a reviewer gets from a look until after it was decided."""
    client = signed_in_as(make_member(project, Role.REVIEWER, f"r{project.pk}"))
    other = signed_in_as(make_member(project, Role.REVIEWER, f"s{project.pk}"))
    look = BlindLook.objects.get(project=project)
    slug = project.slug

    def at(name):
        return reverse(name, args=[slug, look.pk])

    def keep(name, answer, *, rows=False):
        text = bare(answer, project, look, trace)
        if rows:
            # Beside them the queue tells how many signals there are in all.
            text = (
                "200 " + text.split('<ol class="list" data-rows>')[1].split("</ol>")[0]
            )
        found[name] = re.sub(rf"\b[rs]{project.pk}\b", "~person~", text)

    found: dict[str, str] = {}
    as_json = {"headers": {"Accept": "application/json"}}
    keep("page", client.get(at("blind")))
    keep("claim", client.post(at("blind-claim"), **as_json))
    keep("claimed by another", other.post(at("blind-claim"), **as_json))
    keep("page for another", other.get(at("blind")))
    keep("heartbeat", client.post(at("blind-heartbeat"), **as_json))
    keep("draft", client.post(at("blind-draft"), {"note": "typed"}, **as_json))
    keep("typed", client.get(at("blind")))
    keep("no verdict", client.post(at("blind-decide"), {"version": "1"}))
    for seq in range(trace.step_count):
        step = reverse("step-body", args=[slug, trace.pk, seq])
        keep(f"step {seq}", client.get(step))
        keep(f"text {seq}", client.get(step + "?as=text"))
    keep("mine", client.get(reverse("queue", args=[slug]) + "?view=mine"), rows=True)
    keep("release", client.post(at("blind-release")))
    keep("beyond", client.get(at("blind") + "?from=999"))
    decided = {"verdict": "failure", "version": str(_version(look))}
    keep("decide", client.post(at("blind-decide"), decided))
    keep("decided", client.get(at("blind")))
    keep("again", client.post(at("blind-decide"), decided))
    done = client.get(reverse("queue", args=[slug]) + "?view=decided")
    keep("decided ones", done, rows=True)
    keep("undo", client.post(at("blind-undo"), {"version": str(_version(look))}))
    keep("undone", client.get(at("blind")))
    return found


def _version(look) -> int:
    look.refresh_from_db()
    return look.version


@pytest.mark.django_db
def test_nothing_until_the_decision_differs_between_a_flagged_and_a_quiet_run():
    flagged = seen_by_a_reviewer(*run_in("Redwood", flagged=True))
    quiet = seen_by_a_reviewer(*run_in("Bluebell", flagged=False))
    assert Screening.objects.exists()
    assert json.loads(flagged["claim"].split(" ", 1)[1])
    refused = {"claimed by another", "no verdict", "again"}
    for name, text in flagged.items():
        assert text.startswith(("4",) if name in refused else ("2", "3")), name
        assert text == quiet[name], name
