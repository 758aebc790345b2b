"""Sends files through the upload page and visits every page that shows them."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.agents.models import Agent
from apps.engine.checks import CHECKS
from apps.pipeline.reading import read_upload
from apps.replays.models import Batch
from apps.reports.models import Report
from apps.review.models import BlindLook, Signal
from apps.screening.models import Definition, Shadow
from apps.traces.models import Task, Trace, TraceSet, Upload
from apps.traces.sides import choices
from tests.factories import NOW


def url(project, name: str, *more: object) -> str:
    """The address of a page of this project."""
    return reverse(name, args=[project.slug, *more])


def text(answer) -> str:
    """A page with one blank between any two words."""
    return " ".join(answer.content.decode().split())


def send(web, project, content: bytes, name: str = "file.json"):
    """The file through the upload page, then read as a worker would."""
    answer = web.post(
        reverse("uploads", args=[project.slug]),
        {"file": SimpleUploadedFile(name, content)},
    )
    upload = Upload.objects.filter(project=project).order_by("-id").first()
    if upload is not None:
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
        upload.refresh_from_db()
    return answer, upload


def addresses(project) -> list[str]:
    """Every page that shows something of what was uploaded."""
    slug = project.slug
    found = [
        reverse(name, args=[slug])
        for name in (
            "overview",
            "uploads",
            "traces",
            "tasks",
            "agents",
            "agent-outcomes",
            "agent-outcomes-decision",
            "agent-file",
            "agent-yaml",
            "sets",
            "set-new",
            "compare",
            "contracts",
            "queue",
            "project-checks",
            "calibrations",
            "regression",
            "reports",
            "replays",
        )
    ]
    found += [
        reverse("project-check", args=[slug, check])
        # Two statistics and a fact; test_checks.py visits all of them.
        for check in ("tool-drift", "output-decay", "unsupported-claim")
    ]
    found += [reverse("shadows", args=[slug, one.slug]) for one in CHECKS[:2]]
    found += [
        reverse("shadow", args=[slug, one.check_slug, one.pk])
        for one in Shadow.objects.filter(project=project)[:3]
    ]
    for upload in Upload.objects.filter(project=project):
        found += [
            reverse(name, args=[slug, upload.pk])
            for name in ("upload", "upload-progress")
        ]
    for trace in Trace.objects.filter(project=project)[:3]:
        found.append(reverse("trace", args=[slug, trace.pk]))
        found.append(reverse("trace-download", args=[slug, trace.pk]))
        for seq in range(min(trace.step_count, 7)):
            body = reverse("step-body", args=[slug, trace.pk, seq])
            found += [body, body + "?as=text"]
    for task in Task.objects.filter(project=project)[:3]:
        forks = reverse("task-forks", args=[slug, task.pk])
        found += [reverse("task", args=[slug, task.pk]), forks, f"{forks}?compare=text"]
    found += _agents(project) + _comparisons(project) + _replays(project)
    for one in Definition.objects.filter(project=project, number=1)[:3]:
        found += [
            reverse(name, args=[slug, one.slug])
            for name in ("contract", "contract-edit")
        ]
    for signal in Signal.objects.filter(project=project)[:3]:
        found.append(reverse("signal", args=[slug, signal.pk]))
    found += [
        reverse("calibration", args=[slug, "output-decay"]),
        *(
            reverse("blind", args=[slug, look.pk])
            for look in BlindLook.objects.filter(project=project)[:3]
        ),
    ]
    for report in Report.objects.filter(project=project)[:1]:
        found += [
            reverse(f"report{form}", args=[slug, report.pk])
            for form in ("", "-markdown", "-pdf", "-json")
        ]
    return found


def _agents(project) -> list[str]:
    """Some agents, and the forms of what is asked of them."""
    found = []
    for agent in Agent.objects.filter(project=project)[:3]:
        found += [
            reverse(name, args=[project.slug, agent.pk])
            for name in ("agent", "agent-decision", "agent-contract-new")
        ]
        found.append(found[-3] + "?recent=1")
    return found


def _replays(project) -> list[str]:
    """The newest batches with a group and a run of each."""
    found = []
    for batch in Batch.objects.filter(project=project).order_by("-pk")[:2]:
        args = [project.slug, batch.pk]
        found += [
            reverse(name, args=args)
            for name in ("replay-batch", "replay-batch-progress")
        ]
        found.append(reverse("replay-group", args=[*args, 1]))
        run = batch.run_set.order_by("pk").first()
        found.append(reverse("replay-run", args=[project.slug, run.pk]))
    return found


def _comparisons(project) -> list[str]:
    """Sets, and the first two things that may be compared, side by side."""
    found = [
        reverse(name, args=[project.slug, one.slug])
        for one in TraceSet.objects.filter(project=project)[:3]
        for name in ("trace-set", "set-delete")
    ]
    keys = [one.key for one in choices(project)[:2]]
    if len(keys) < 2:
        return found
    query = "?" + urlencode({"first": keys[0], "second": keys[1]})
    return [*found, reverse("compare", args=[project.slug]) + query]


def freeze(web, project, title: str = "Weekly") -> None:
    answer = web.post(
        reverse("reports", args=[project.slug]), {"title": title, "view": "all"}
    )
    assert answer.status_code == 302, answer.content.decode()


def pages(web, project) -> dict[str, bytes]:
    """The bytes of every page; each answers 200."""
    found = {}
    for address in addresses(project):
        answer = web.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        found[address] = answer.content
    return found


class Elements(HTMLParser):
    """What a browser would make of a page: every element with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def assert_inert(page: str) -> None:
    """No element, attribute or template of a hostile text took effect."""
    assert "\x00" not in page
    assert "<svg/onload" not in page
    for tag, attributes in Elements(page).found:
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert "src" in attributes or attributes["type"] == "application/json"
        for name in ("src", "href", "action", "hx-get", "hx-post", "data-url"):
            target = attributes.get(name, "/")
            assert target.startswith(("/", "?", "#")) or target == "", (tag, target)
