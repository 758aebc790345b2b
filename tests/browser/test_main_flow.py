from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pypdf
import pytest
from playwright.sync_api import expect

from apps.accounts.models import Project, User
from apps.reports.layout import outline_of
from apps.reports.models import Report
from apps.reports.queries import document_of
from apps.review.models import Signal
from apps.screening.models import Screening
from apps.traces.models import Task, Trace, Upload
from tests.benchmarks.corpus import TOOLS, results_file
from tests.conftest import SHARED
from tests.factories import make_project, make_user
from tests.reports.test_pdf import cells_of, joined

READING = 60_000
NARROWING = [*TOOLS[:5], *["think"] * 6]


@dataclass
class Flow:
    """One file of results, and what a correct reader finds in it."""

    name: str
    content: bytes
    rewards: Counter[str]
    model_calls: int
    drift: dict[str, int] | None
    owner: User
    project: Project
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def uploads(self) -> str:
        return f"/projects/{self.project.slug}/uploads/"

    @property
    def queue(self) -> str:
        return f"/projects/{self.project.slug}/queue/"


def narrowing(task: int) -> list[dict[str, Any]]:
    """A run whose agent ends with one tool again and again."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Change my flight."}]
    for turn, tool in enumerate(NARROWING):
        call_id = f"call_{task}_{turn}"
        function = {"name": tool, "arguments": json.dumps({"turn": turn})}
        call = {"id": call_id, "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "name": tool, "content": "ok"},
        ]
    return messages


def made_file() -> bytes:
    trials = json.loads(results_file())
    for task in (3, 7, 11):
        trials[task * 4] |= {"traj": narrowing(task)}
    return json.dumps(trials).encode()


def real_file() -> bytes:
    path = SHARED / "data" / "tau_bench_results" / "gpt-4o-airline.json"
    if not path.is_file():
        pytest.skip("gpt-4o-airline.json lies outside of the repository and is absent.")
    return path.read_bytes()


@pytest.fixture(scope="module", params=["made", "gpt-4o-airline"])
def flow(request, site) -> Flow:
    """A project whose only upload comes in the first test of this module."""
    is_real = request.param != "made"
    content = real_file() if is_real else made_file()
    trials = json.loads(content)
    owner = make_user()
    return Flow(
        name=f"{request.param}.json",
        content=content,
        rewards=Counter("pass" if t["reward"] == 1 else "fail" for t in trials),
        model_calls=sum(m["role"] == "assistant" for t in trials for m in t["traj"]),
        drift={"hard_collapse": 10, "collapse": 12, "broadened": 12}
        if is_real
        else None,
        owner=owner,
        project=make_project(owner=owner),
    )


@pytest.fixture
def page(open_page, flow):
    return open_page(flow.owner)


@pytest.fixture
def uploaded(flow, page) -> Upload:
    """The flow's file, chosen in the browser unless an earlier test has done so."""
    found = Upload.objects.filter(project=flow.project, name=flow.name).first()
    return found or choose_file(flow, page)


def choose_file(flow: Flow, page) -> Upload:
    page.goto(flow.uploads)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    payload = {"name": flow.name, "mimeType": "", "buffer": flow.content}
    chooser.value.set_files([payload])
    row = page.locator("[data-upload-list] .row").first
    expect(row).to_contain_text(flow.name)
    expect(row).to_have_attribute("data-state", "done", timeout=READING)
    return Upload.objects.get(project=flow.project, name=flow.name)


def numbers(text: str) -> str:
    """Without the thin spaces that group digits."""
    return text.replace("\u202f", "")


def stats(page) -> dict[str, str]:
    names = page.locator(".stat dt").all_inner_texts()
    values = page.locator(".stat dd.value").all_inner_texts()
    return {
        name.lower(): numbers(value) for name, value in zip(names, values, strict=True)
    }


def test_a_chosen_file_is_followed_until_its_receipt_says_what_was_read(
    flow, page, uploaded
):
    row = page.locator("[data-upload-list] .row").first
    if row.count():
        expect(row).to_contain_text("200 traces")
    page.goto(f"{flow.uploads}{uploaded.pk}/")
    assert stats(page)["traces"] == "200"
    assert stats(page)["usage reported"] == f"0 of {flow.model_calls}"
    expect(page.locator("main")).to_contain_text("tau-bench results")
    expect(page.locator("main")).to_contain_text("output decay could not be checked")


def test_the_file_is_stored_as_tasks_trials_and_outcomes(flow, uploaded):
    traces = Trace.objects.filter(project=flow.project)
    tasks = Task.objects.filter(project=flow.project)
    assert (traces.count(), tasks.count()) == (200, 50)
    assert {
        tuple(sorted(t.trace_set.values_list("trial", flat=True))) for t in tasks
    } == {(0, 1, 2, 3)}
    assert Counter(traces.values_list("outcome", flat=True)) == flow.rewards
    assert uploaded.usage_known == 0
    assert uploaded.model_call_count == flow.model_calls
    if flow.drift:
        assert flow.rewards == {"pass": 84, "fail": 116}
        assert flow.model_calls == 2454


def test_every_answer_of_every_check_is_stored(flow, uploaded):
    answers = Screening.objects.filter(project=flow.project)
    decay = answers.filter(check_slug="output-decay")
    assert decay.filter(answer="not_applicable").count() == decay.count() == 200
    drift = answers.filter(check_slug="tool-drift").exclude(answer="not_applicable")
    reasons = Counter(drift.values_list("reason_code", flat=True))
    if flow.drift:
        assert drift.count() == 61
        assert {name: reasons[name] for name in flow.drift} == flow.drift
    else:
        assert reasons["hard_collapse"] >= 3


def test_the_overview_says_what_could_not_be_checked(flow, page, uploaded):
    page.goto(f"/projects/{flow.project.slug}/")
    said = numbers(page.locator("main").inner_text())
    assert f"0 of {flow.model_calls} model calls" in said
    assert "Output decay could not be checked on any trace" in said


def test_the_same_bytes_lead_to_the_same_upload(flow, page, uploaded):
    page.goto(flow.uploads)
    page.set_input_files(
        "#id_file", {"name": "again.json", "mimeType": "", "buffer": flow.content}
    )
    row = page.locator("[data-upload-list] .row").first
    expect(row).to_have_attribute("data-state", "done", timeout=READING)
    expect(row).to_contain_text(f"Already here, as {uploaded.name}.")
    assert (
        row.locator("a").first.get_attribute("href") == f"{flow.uploads}{uploaded.pk}/"
    )
    assert (
        Upload.objects.filter(project=flow.project, sha256=uploaded.sha256).count() == 1
    )


def dismiss(page, *, note: str) -> None:
    page.keyboard.press("2")
    page.keyboard.press("1")
    page.keyboard.press("c")
    page.keyboard.type(note)
    page.keyboard.press("Control+Enter")


def test_a_signal_is_claimed_decided_undone_and_decided_again_by_keyboard(
    flow, page, uploaded
):
    page.goto(f"{flow.queue}?upload={uploaded.pk}")
    page.keyboard.press("g")
    page.wait_for_url("**/signals/**")
    first = page.url
    signal = Signal.objects.get(pk=int(re.search(r"/signals/(\d+)/", first)[1]))
    expect(page.locator("[data-claim]")).to_contain_text("yours for")
    heading = page.locator("h1").inner_text()

    dismiss(page, note="The task ends that way.")
    expect(page.locator("#messages")).to_contain_text("Decided")
    signal.refresh_from_db()
    assert (signal.state, signal.verdict, signal.reason) == (
        "decided",
        "dismiss",
        "converged",
    )

    page.keyboard.press("u")
    expect(page.locator("#messages")).to_contain_text("Undone")
    expect(page.locator("h1")).to_have_text(heading)
    signal.refresh_from_db()
    assert (signal.state, signal.claimed_by_id) == ("claimed", flow.owner.pk)

    page.keyboard.press("1")
    page.locator("#note").fill("It repeats one tool until it gives up.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#messages")).to_contain_text("Decided")
    page.goto(first)
    history = page.locator(".history li").all_inner_texts()
    said = [re.sub(r"\s+", " ", line) for line in history]
    expected = [
        "Opened by",
        "claimed it",
        "dismiss",
        "took the decision back",
        "confirm",
    ]
    assert len(said) == len(expected)
    assert [
        word for word, line in zip(expected, said, strict=True) if word not in line
    ] == []
    assert "The task ends that way." in said[2]


def test_a_report_is_frozen_from_the_queue_and_taken_away(flow, page, uploaded):
    page.goto(f"{flow.queue}?view=all")
    page.get_by_role("link", name="Freeze a report").click()
    page.get_by_label("Title").fill("First look")
    page.get_by_role("button", name="Freeze a report").click()
    expect(page.locator("h1")).to_have_text("First look")
    report = Report.objects.get(project=flow.project)

    with page.expect_download() as markdown:
        page.get_by_role("link", name="Markdown").click()
    text = markdown.value.path().read_text()
    assert text.startswith("# ")
    for headline in Signal.objects.filter(project=flow.project).values_list(
        "headline", flat=True
    ):
        assert headline.split(" over ")[0] in text

    with page.expect_download() as pdf:
        page.get_by_role("link", name="PDF").click()
    reader = pypdf.PdfReader(io.BytesIO(pdf.value.path().read_bytes()))
    printed = joined("".join(sheet.extract_text() for sheet in reader.pages))
    cells = list(cells_of(outline_of(document_of(report)).blocks))
    assert len(cells) > 30
    assert [cell for cell in cells if joined(cell) not in printed] == []
