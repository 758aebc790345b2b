from __future__ import annotations

import base64

import pytest
from playwright.sync_api import expect

from apps.engine.formats.evalsite_writer import dump
from apps.traces.models import Upload
from tests.browser.scenes import HTML, PARTLY
from tests.factories import CHAT, chat_bytes, decay_trace

DROP = """async (files) => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
  }
  const place = document.querySelector('form[data-upload]');
  for (const type of ['dragenter', 'dragover', 'drop']) {
    place.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""


def drop(page, **files: bytes) -> None:
    encoded = [[name, base64.b64encode(text).decode()] for name, text in files.items()]
    page.evaluate(DROP, encoded)


@pytest.fixture
def uploads(page, project):
    page.goto(f"/projects/{project.slug}/uploads/")
    return page


def row_of(page, name: str):
    return page.locator("[data-upload-list] .row", has_text=name)


def test_several_dropped_files_each_end_with_a_sentence(uploads, project):
    drop(
        uploads,
        **{
            "good.jsonl": chat_bytes(CHAT),
            "partly.jsonl": PARTLY,
            "empty.json": b"",
            "page.html": HTML,
        },
    )
    for name, state, words in (
        ("good.jsonl", "done", "1 trace"),
        ("partly.jsonl", "done", "2 not read"),
        ("empty.json", "failed", "This file is empty: it has 0 bytes."),
        ("page.html", "failed", "web page"),
    ):
        row = row_of(uploads, name)
        expect(row).to_have_attribute("data-state", state, timeout=30_000)
        expect(row).to_contain_text(words)
    assert Upload.objects.filter(project=project).count() == 3


def test_the_first_file_ends_the_sentence_that_there_is_none(uploads):
    expect(uploads.get_by_text("Nothing was uploaded yet")).to_be_visible()
    drop(uploads, **{"good.jsonl": chat_bytes(CHAT)})
    expect(uploads.get_by_text("Nothing was uploaded yet")).to_have_count(0)


def test_the_number_beside_the_queue_grows_without_a_reload(uploads, project):
    number = uploads.locator(f'.side-nav a[href="/projects/{project.slug}/queue/"] .n')
    expect(number).to_contain_text("0")
    drop(uploads, **{"falling.jsonl": dump(decay_trace(900, 700, 500, 300, 100, 50))})
    expect(row_of(uploads, "falling.jsonl")).to_contain_text(
        "signal to review", timeout=30_000
    )
    expect(number).to_contain_text("1")


def test_a_row_leads_to_its_receipt_with_line_and_reason(uploads):
    drop(uploads, **{"partly.jsonl": PARTLY})
    row = row_of(uploads, "partly.jsonl")
    expect(row).to_have_attribute("data-state", "done", timeout=30_000)
    row.get_by_role("link").first.click()
    expect(uploads.locator("h1")).to_have_text("partly.jsonl")
    expect(
        uploads.get_by_role("region", name="Records that were not read")
    ).to_contain_text("line 3")


def test_rows_do_not_jump_while_a_file_is_read(uploads):
    drop(uploads, **{"one.jsonl": chat_bytes(CHAT)})
    row = row_of(uploads, "one.jsonl")
    height = row.bounding_box()["height"]
    expect(row).to_have_attribute("data-state", "done", timeout=30_000)
    assert abs(row.bounding_box()["height"] - height) <= 1


def test_a_format_chosen_by_hand_is_used_and_its_failure_said(uploads):
    uploads.select_option("#id_format", label="tau-bench results")
    drop(uploads, **{"chat.jsonl": chat_bytes(CHAT)})
    row = row_of(uploads, "chat.jsonl")
    expect(row).to_have_attribute("data-state", "failed", timeout=30_000)
    assert (
        Upload.objects.get(project__slug=uploads.url.split("/")[4]).format
        == "tau-bench"
    )
