"""A furnished project, and the list of the pages that people see.

The demo's sample files, uploads in every state, signals in every state and a report;
made through the product's own operations.
"""

from __future__ import annotations

import json
from pathlib import Path

from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.operations import create_project, create_token, set_role
from apps.accounts.permissions import Role, Scope
from apps.engine.checks import CHECKS
from apps.engine.formats.evalsite_writer import dump
from apps.live.arrival import NO_ID_SENTENCE, Refused, spans_of
from apps.live.encoding import PROTOBUF, decode
from apps.live.models import LiveTrace
from apps.live.operations import note_refusals, receive_spans
from apps.pipeline.demo.asked import ask
from apps.pipeline.flow import read_again
from apps.pipeline.lineups import catch_up
from apps.pipeline.live import assemble_due
from apps.pipeline.management.commands.demo import sample_files
from apps.reports.models import Report
from apps.reports.operations import freeze
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.queries import QueueFilter
from apps.review.transitions import DismissalReason, FailureKind, Verdict
from apps.screening.definitions import Wanted, define, set_state
from apps.screening.models import DefinitionState, Screening
from apps.traces.models import Task, Trace, Upload
from apps.traces.operations import claim_upload, create_upload
from apps.traces.parts import About, begin
from apps.traces.storage import receive
from tests.browser.agent_scenes import agent_scenes
from tests.browser.blind_scenes import (
    blind_scenes,
    look_blindly,
    upload_for_blind_looks,
)
from tests.browser.line_up_scenes import furnish_line_up, line_up_addresses
from tests.browser.making import EMPTY, Scene, upload_and_read, wait_until_read
from tests.browser.replay_scenes import furnish_replays
from tests.browser.score_scenes import settle_scores
from tests.browser.set_scenes import compare_addresses, make_sets
from tests.browser.target_scenes import target_scenes
from tests.factories import decay_trace
from tests.formats.archives import zip_of
from tests.formats.otlp_files import as_protobuf, call, span

HTML = b"<!doctype html><html><body><h1>Sign in</h1></body></html>\n"
PARTLY = (
    b'{"messages": [{"role": "user", "content": "Where is order 17?"},'
    b' {"role": "assistant", "content": "It left the warehouse today."}]}\n'
    b'{"messages": "this should be a list"}\n'
    b'{"messages": [{"role": "us\n'
)
SECRET = (
    "use "
    + "ghp_"
    + "a1B2c3D4e5F6g7H8" * 2
    + "i9J0, then write to anna@parcels.example"
)
ODD = (
    b'[{"role": "user", "content": "Where is parcel 9 of caf\xe9 Anna? \\u0000"},'
    b' {"role": "assistant", "content": "Still in Graz."}]'
)
# Enough signals for one in every state, whatever files lie beside the project.
FALLING = ((140, 120, 100, 80, 60, 40), (90, 80, 70, 60, 30), (300, 200, 150, 90, 80))


def _mixed_archive() -> bytes:
    """An archive of several formats, with a secret, odd bytes and what is no trace."""
    asked = {"role": "user", "content": f"Where is parcel 8? {SECRET}"}
    said = {"role": "assistant", "content": "It left Graz."}
    result = {
        "task_id": 4,
        "trial": 0,
        "reward": 1.0,
        "info": {},
        "traj": [asked, said],
    }
    return zip_of(
        {
            "run/chats.jsonl": json.dumps({"messages": [asked, said]}).encode(),
            "run/odd.json": ODD,
            "run/results.json": json.dumps([result]).encode(),
            "run/broken.json": b'{"messages": [{"role": "user"',
            "run/README.md": b"Runs of the night.",
        }
    )


def _send_live(project: Project) -> None:
    """A run that came span by span, and a request that was no request."""
    now = timezone.now()
    calls = [call(number, 1, 40 + number * 7 % 30) for number in range(2, 7)]
    request = decode(
        as_protobuf(span(1, name="night shift", lasts=9), *calls), PROTOBUF
    )
    receive_spans(project=project, spans=spans_of(request).spans, now=now)
    LiveTrace.objects.filter(project=project).update(due_at=now)
    assemble_due(clock=timezone.now)
    refused = Refused()
    refused.add("no_id", NO_ID_SENTENCE, 3)
    note_refusals(project_id=project.pk, refused=refused, now=now)


def _leave_unread(project: Project, *, name: str, is_reading: bool) -> None:
    """An upload that no worker was told about, so that it stays as it is."""
    content = b'{"messages": []}\n' + name.encode()
    received = receive([content], limit=10**9, name=name)
    upload, _ = create_upload(
        project=project, received=received, user=None, now=timezone.now()
    )
    if is_reading:
        claim_upload(upload_id=upload.pk, lease_seconds=3600)
        Upload.objects.filter(pk=upload.pk).update(
            bytes_read=1_310_720, bytes_total=4_194_304, trace_count=128
        )


def _leave_unfinished(project: Project, owner: User) -> None:
    """A file of which a part has arrived before its tab was closed."""
    about = About(project.pk, owner.pk, size=4_000_000, name="long-night.jsonl")
    part, _ = begin(about)
    arrived = receive([b"{}" * 1_450_000], limit=10**9, name=about.name)
    part.append(arrived, at=0)


def _read_again_in_vain(project: Project) -> None:
    """An upload whose traces stayed because another format found nothing."""
    upload = Upload.objects.filter(project=project, name="exported-chats.jsonl").get()
    read_again(upload=upload, format_override="langfuse")
    wait_until_read(upload)


def _upload_files(project: Project, shared: Path | None) -> None:
    for name, content in sample_files():
        upload_and_read(project, content, name=name)
    falling = [decay_trace(*lengths, name="evening") for lengths in FALLING]
    evening = b"".join(dump(trace) for trace in falling)
    upload_and_read(project, evening, name="evening-run.evalsite.jsonl")
    upload_and_read(project, PARTLY, name="exported-chats.jsonl")
    upload_and_read(project, _mixed_archive(), name="night-of-runs.zip")
    if shared is not None:
        real = [shared / "tau_bench_results" / "gpt-4o-airline.json"]
        real += sorted((shared / "otlp_json").glob("*.json*"))[:1]
        for path in real:
            upload_and_read(project, path.read_bytes(), name=path.name)
    upload_for_blind_looks(project)
    upload_and_read(project, HTML, name="traces.json")
    _leave_unread(project, name="night-run.jsonl", is_reading=True)
    _leave_unread(project, name="weekend-run.jsonl", is_reading=False)
    _read_again_in_vain(project)


CONTRACTS = (
    (
        "contract",
        "Look before you act",
        {
            "operator": "precedes",
            "select": {"kind": "tool_call", "name": "update_* | cancel_* | book_*"},
            "before": {"name": "get_*"},
            "sentence": "Agreed with the desk in May: nobody books from memory.",
        },
    ),
    (
        "contract",
        "Transfers end a run",
        {
            "operator": "at_most",
            "select": {"name": "transfer_to_human*"},
            "n": 1,
            "level": "telemetry",
        },
    ),
    (
        "planted-fact",
        "Order number",
        {"value": "17", "probe": "which order", "normaliser": "number"},
    ),
)


def _define_some(project: Project, owner: User) -> None:
    """Contracts, one of them paused, checked on the traces that are here."""
    for kind, label, spec in CONTRACTS:
        row = define(
            project_id=project.pk,
            wanted=Wanted(kind=kind, label=label, spec=spec),
            user_id=owner.pk,
            now=timezone.now(),
        )
    set_state(
        current=row,
        state=DefinitionState.PAUSED,
        user_id=owner.pk,
        now=timezone.now(),
    )
    while catch_up(project_id=project.pk, clock=timezone.now):
        pass


def _review_some(project: Project, reviewer: User, owner: User) -> None:
    # What is masked stays open, so that the queue leads with it.
    rows = Signal.objects.filter(project=project, is_masked=False, state="open")
    signals = list(rows.order_by("-chance", "pk"))
    confirmed, dismissed, claimed = signals[:3]
    review.decide(
        signal_id=confirmed.pk,
        user=owner,
        base_version=confirmed.version,
        decision=review.DecisionInput(
            verdict=Verdict.CONFIRM,
            note="The answers lose the order number after the third turn.",
            failure_kind=FailureKind.values[0],
            where_agent="",
        ),
    )
    review.decide(
        signal_id=dismissed.pk,
        user=reviewer,
        base_version=dismissed.version,
        decision=review.DecisionInput(
            verdict=Verdict.DISMISS,
            reason=DismissalReason.CONVERGED.value,
            note="It converged as it should.",
        ),
    )
    review.claim(signal_id=claimed.pk, user=reviewer)


def furnish(*, owner: User, reviewer: User, shared: Path | None = None) -> Project:
    """A project with something in every state.

    `shared` is the folder of real trace files, or None.
    """
    now = timezone.now()
    project = create_project(
        name="Support desk",
        owner=owner,
        now=now,
        description="An invented support desk. Its memory agent forgets.",
    )
    create_project(name=EMPTY, owner=owner, now=now)
    set_role(project=project, user=reviewer, role=Role.REVIEWER, now=now)
    create_token(
        project=project,
        name="nightly export",
        scopes=list(Scope)[:1],
        user=owner,
        now=now,
    )
    ask(project_id=project.pk, user_id=owner.pk, now=now)
    _upload_files(project, shared)
    _leave_unfinished(project, owner)
    _send_live(project)
    make_sets(project, owner)
    _define_some(project, owner)
    settle_scores(project)
    _review_some(project, reviewer, owner)
    furnish_line_up(project, owner, reviewer)
    look_blindly(project, owner, reviewer)
    furnish_replays(project)
    freeze(
        project=project,
        user=owner,
        title="Release 4, first look",
        where=QueueFilter(view="all"),
        now=now,
    )
    return project


def _signal_scenes(project: Project) -> list[Scene]:
    of_project = Signal.objects.filter(project=project)
    still_open = of_project.filter(state="open").order_by("chance", "pk")
    chosen = {
        "signal-output-decay": still_open.filter(check_slug="output-decay").first(),
        "signal-tool-drift": still_open.filter(check_slug="tool-drift").first(),
        "signal-decided": of_project.filter(state="decided").order_by("pk").first(),
        "signal-claimed": of_project.filter(state="claimed").first(),
        "signal-masked": still_open.filter(is_masked=True).first(),
    }
    return [
        Scene(name, reverse("signal", args=[project.slug, signal.pk]))
        for name, signal in chosen.items()
        if signal is not None
    ]


def _upload_scenes(project: Project) -> list[Scene]:
    uploads = Upload.objects.filter(project=project)
    chosen = {
        "receipt": uploads.filter(state="done").order_by("-model_call_count").first(),
        "receipt-rejected": uploads.filter(rejected_count__gt=0, state="done").first(),
        "receipt-archive": uploads.filter(format="archive").first(),
        "receipt-live": uploads.filter(source="live").first(),
        "receipt-again": uploads.exclude(reread_note="").first(),
        "receipt-failed": uploads.filter(state="failed").first(),
        "receipt-reading": uploads.filter(state="reading").first(),
        "receipt-no-usage": uploads.filter(
            state="done", usage_known=0, model_call_count__gt=0
        ).first(),
    }
    return [
        Scene(name, reverse("upload", args=[project.slug, upload.pk]))
        for name, upload in chosen.items()
        if upload is not None
    ]


def _trace_scenes(project: Project) -> list[Scene]:
    traces = Trace.objects.filter(project=project)
    chosen = {
        "trace": traces.order_by("-step_count").first(),
        "trace-no-usage": traces.filter(usage_known=0, model_call_count__gt=0).first(),
    }
    return [
        Scene(name, reverse("trace", args=[project.slug, trace.pk]))
        for name, trace in chosen.items()
        if trace is not None
    ]


def scenes_of(project: Project) -> list[Scene]:
    """Every page of a furnished project, in the order in which people meet them."""

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    # Tests before this one may have left projects without uploads of their own.
    [empty] = Project.objects.filter(name=EMPTY, members__in=project.members.all())
    report = Report.objects.filter(project=project).earliest("pk")
    task = Task.objects.filter(project=project).earliest("pk")
    assert Screening.objects.filter(trace__project=project).exists()
    return [
        Scene("sign-in", reverse("sign-in"), is_public=True),
        Scene("sign-in-link", reverse("sign-in-link", args=["x"]), is_public=True),
        Scene("projects", reverse("projects")),
        Scene("overview", of("overview")),
        Scene("overview-empty", reverse("overview", args=[empty.slug])),
        Scene("uploads", of("uploads")),
        Scene("uploads-empty", reverse("uploads", args=[empty.slug])),
        *_upload_scenes(project),
        Scene("queue", of("queue")),
        Scene("queue-filtered", of("queue") + "?agent=nobody&check=tool-drift"),
        Scene("queue-empty", reverse("queue", args=[empty.slug])),
        Scene("queue-decided", of("queue") + "?view=decided"),
        *_signal_scenes(project),
        *blind_scenes(project, project.members.order_by("pk")[0]),
        Scene("calibrations", of("calibrations")),
        Scene("calibrations-empty", reverse("calibrations", args=[empty.slug])),
        Scene("calibration-decay", of("calibration", "output-decay")),
        Scene("calibration-drift", of("calibration", "tool-drift")),
        Scene("calibration-telemetry", of("calibration", "missing-usage")),
        Scene(
            "calibration-empty",
            reverse("calibration", args=[empty.slug, "output-decay"]),
        ),
        Scene("traces", of("traces")),
        Scene("traces-empty", reverse("traces", args=[empty.slug])),
        *_trace_scenes(project),
        Scene("tasks", of("tasks")),
        Scene("tasks-empty", reverse("tasks", args=[empty.slug])),
        Scene("task", of("task", task.pk)),
        *agent_scenes(project, empty),
        *target_scenes(project),
        *(Scene(name, path) for name, path in compare_addresses(project, empty)),
        Scene("contracts", of("contracts")),
        Scene("contracts-empty", reverse("contracts", args=[empty.slug])),
        Scene("contract", of("contract", "look-before-you-act")),
        Scene("contract-new", of("contract-new")),
        Scene("contract-edit", of("contract-edit", "look-before-you-act")),
        Scene("planted-fact-edit", of("contract-edit", "order-number")),
        Scene("project-checks", of("project-checks")),
        Scene("project-checks-empty", reverse("project-checks", args=[empty.slug])),
        Scene("project-check-drift", of("project-check", "tool-drift")),
        Scene("project-check-decay", of("project-check", "output-decay")),
        Scene("project-check-fact", of("project-check", "missing-usage")),
        Scene("reports", of("reports")),
        Scene("report", of("report", report.pk)),
        Scene("settings", of("project-settings")),
        *(Scene(name, path) for name, path in line_up_addresses(project)),
        Scene("checks", reverse("checks")),
        Scene("privacy", reverse("privacy")),
        Scene("check", reverse("check", args=[CHECKS[0].slug])),
        Scene("formats", reverse("formats")),
        Scene("api", reverse("api")),
        Scene("account", reverse("account")),
        Scene("not-found", reverse("overview", args=["no-such-project"]), status=404),
    ]
