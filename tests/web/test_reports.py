"""The page of reports: a report holds what the page says, nothing is left out unsaid."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from apps.reports.models import Report
from apps.reports.queries import document_of
from apps.review.models import Signal
from apps.review.operations import DecisionInput, claim, decide
from apps.review.transitions import Verdict
from tests.factories import decay_trace, upload_traces


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def three_signals(project, owner):
    """Three signals of one project; the first of them is confirmed."""
    upload_traces(
        project,
        *[
            decay_trace(100 + n, 90, 80, 70, 40, name=f"falls {n}", task=f"t{n}")
            for n in range(3)
        ],
    )
    first = claim(
        signal_id=Signal.objects.order_by("id").values_list("pk", flat=True)[0],
        user=owner,
    )
    decide(
        signal_id=first.pk,
        user=owner,
        decision=DecisionInput(verdict=Verdict.CONFIRM),
        base_version=first.version,
    )


def page(web, project, query="") -> str:
    answer = web.get(reverse("reports", args=[project.slug]) + query)
    return answer.content.decode()


def sent_from(text: str) -> dict[str, str]:
    """What the form on the page would send besides its title."""
    hidden = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
    return dict(re.findall(hidden, text)) | {"title": "Release 12"}


def frozen(web, project, fields: dict[str, str]) -> dict:
    web.post(reverse("reports", args=[project.slug]), fields)
    return document_of(Report.objects.latest("id"))


def test_a_report_of_only_a_title_holds_decided_signals_too(
    web, project, three_signals
):
    document = frozen(web, project, {"title": "Release 12"})
    assert len(document["signals"]) == document["signals_selected"] == 3
    assert document["filter"]["view"] == "all"


def test_the_form_of_the_page_freezes_what_its_hint_says(web, project, three_signals):
    text = page(web, project)
    assert "Holds every signal of the project." in text
    assert len(frozen(web, project, sent_from(text))["signals"]) == 3


@pytest.mark.parametrize(("view", "held"), [("open", 2), ("decided", 1), ("all", 3)])
def test_the_view_of_the_queue_is_carried_into_the_report(
    web, project, three_signals, view, held
):
    queue = web.get(reverse("queue", args=[project.slug]) + f"?view={view}")
    address = reverse("reports", args=[project.slug])
    link = re.search(rf'href="{address}(\?[^"]*)"', queue.content.decode())
    query = link.group(1).replace("&amp;", "&")
    assert f"view={view}" in query
    text = page(web, project, query)
    assert ("Holds a part of the project" in text) == (view != "all")
    if view != "all":
        assert f"{view} signals" in text
    assert len(frozen(web, project, sent_from(text))["signals"]) == held
