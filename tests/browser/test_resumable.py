from __future__ import annotations

import hashlib
import json
import os

import pytest
from django.conf import settings as django_settings
from playwright.sync_api import expect

from apps.traces.models import Upload
from apps.traces.storage import open_raw
from tests.browser.chromium import context_of
from tests.browser.wire import wired
from tests.factories import CHAT, chat_bytes
from tests.flows.conftest import database_url

MEGABYTE = 1_000_000
PIECE = 8 * 1024 * 1024
# Long texts make a large file that is read quickly.
LINES = 180


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of about 36 MB with a trace a line."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    with path.open("w") as stream:
        for number in range(LINES):
            said = {"role": "user", "content": f"{number:03} " * 50_000}
            stream.write(json.dumps({"messages": [said, CHAT[2]]}) + "\n")
    return path


@pytest.fixture(scope="module")
def line(site, tmp_path_factory):
    """The product's web server, and a line to it that can be cut."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REDIS_URL": str(django_settings.REDIS_URL),
        "EVALSITE_DATA_DIR": str(site.uploads.parent),
        "EVALSITE_SECRET_KEY": django_settings.SECRET_KEY,
        "EVALSITE_DEBUG": "1",
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
    }
    with wired(environment, tmp_path_factory.mktemp("web") / "log") as pair:
        yield pair


@pytest.fixture
def server(line):
    return line[0]


@pytest.fixture
def wire(line):
    line[1].mend()
    return line[1]


@pytest.fixture
def tab(wire, browser, owner, project):
    """Opens the upload page behind the line; a broken script fails the test."""
    errors, contexts = [], []

    def opened():
        context = context_of(browser, address=wire.address, user=owner)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"/projects/{project.slug}/uploads/")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def row_of(page, name: str):
    return page.locator("[data-upload-list] .row", has_text=name)


def expect_whole(page, project, path, name: str = "") -> None:
    row = row_of(page, name or path.name)
    expect(row).to_have_attribute("data-state", "done", timeout=60_000)
    upload = Upload.objects.get(project=project)
    with open_raw(upload.sha256) as stored:
        digest = hashlib.file_digest(stored, "sha256").hexdigest()
    assert digest == upload.sha256
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert upload.trace_count == LINES


# Keeps every value that the progress bar shows.
WATCH = """() => {
  window.seen = [];
  const list = document.querySelector('[data-upload-list]');
  new MutationObserver(() => {
    const row = list.querySelector('.row[data-state=receiving] progress');
    if (row?.hasAttribute('value')) window.seen.push(row.value);
  }).observe(list, { subtree: true, attributes: true, childList: true });
}"""


def test_a_lost_connection_is_waited_out_and_progress_never_jumps_back(
    tab, wire, project, large
):
    page, size = tab(), large.stat().st_size
    page.evaluate(WATCH)
    before = wire.carried
    wire.cut_after(20 * MEGABYTE)
    page.set_input_files("#id_file", large)
    assert wire.was_cut.wait(30)
    row = row_of(page, large.name)
    expect(row).to_contain_text("The connection is lost. 17 MB are safe; trying again.")
    wire.mend()
    expect_whole(page, project, large)
    # The piece that broke off, and one that met its own remains, went twice at most.
    assert wire.carried - before < size + 2 * PIECE + MEGABYTE
    seen = page.evaluate("window.seen")
    assert len(seen) > 5
    assert seen == sorted(seen)


def test_a_killed_web_server_loses_no_whole_piece(tab, wire, server, project, large):
    page = tab()
    wire.cut_after(20 * MEGABYTE)
    page.set_input_files("#id_file", large)
    assert wire.was_cut.wait(30)
    server.kill()
    server.start()
    wire.mend()
    expect_whole(page, project, large)


def test_the_same_file_goes_on_after_its_tab_was_closed(tab, wire, project, large):
    first = tab()
    wire.cut_after(20 * MEGABYTE)
    first.set_input_files("#id_file", large)
    assert wire.was_cut.wait(30)
    first.close()
    wire.mend()
    second, before = tab(), wire.carried
    second.set_input_files("#id_file", large)
    expect_whole(second, project, large)
    assert wire.carried - before < large.stat().st_size - 2 * PIECE + MEGABYTE


def test_two_tabs_with_the_same_file_make_one_whole_upload(tab, project, large):
    pages = [tab(), tab()]
    for page in pages:
        page.set_input_files("#id_file", large)
    for page in pages:
        expect_whole(page, project, large)


def test_a_file_that_is_stopped_is_forgotten(tab, wire, site, project, large):
    page = tab()
    wire.cut_after(10 * MEGABYTE)
    page.set_input_files("#id_file", large)
    assert wire.was_cut.wait(30)
    parts = site.uploads / "parts" / str(project.pk)
    assert list(parts.iterdir())
    row = row_of(page, large.name)
    row.get_by_role("button", name="Stop").click()
    expect(row).to_have_attribute("data-state", "stopped")
    wire.mend()
    for _ in range(50):
        if not list(parts.iterdir()):
            break
        page.wait_for_timeout(100)
    assert list(parts.iterdir()) == []
    assert not Upload.objects.filter(project=project).exists()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "results"
    for name in ("run1/a.jsonl", "run2/b.jsonl", ".git/config", "run2/.DS_Store"):
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chat_bytes(CHAT) + b"\n" * (name == "run2/b.jsonl"))
    return made


def test_a_chosen_folder_is_one_upload_and_the_same_one_again(tab, project, folder):
    for words in ("2 traces", "2 traces"):
        page = tab()
        page.set_input_files("[data-folder]", folder)
        row = row_of(page, "results/")
        expect(row).to_have_attribute("data-state", "done", timeout=30_000)
        expect(row).to_contain_text(words)
    upload = Upload.objects.get(project=project)
    assert (upload.name, upload.trace_count) == ("results.zip", 2)


# A dropped folder, as the browser hands it over: readers that give a few entries a time.
DROPPED = """async ([script, names]) => {
  const { dropped, packed } = await import(script);
  const file = (path) => ({
    name: path.split('/').at(-1),
    file: (done) => done(new File([path], path.split('/').at(-1), { lastModified: 0 })),
  });
  const folder = (name, entries) => ({
    name,
    isDirectory: true,
    createReader: () => {
      const left = [...entries];
      return { readEntries: (done) => done(left.splice(0, 2)) };
    },
  });
  const tree = folder('results', [
    folder('run1', names.map(file)), file('top.json'), file('.hidden'),
  ]);
  const item = { kind: 'file', webkitGetAsEntry: () => tree, getAsFile: () => null };
  const single = { kind: 'file', webkitGetAsEntry: () => null, getAsFile: () => new File(['x'], 'x') };
  const [found, alone] = await dropped({ items: [item, single] });
  const zip = await packed(found);
  return [found.files.map(({ path }) => path), alone.name, zip.name, zip.size > 0];
}"""


def test_a_dropped_folder_is_walked_to_its_last_entry(tab):
    page = tab()
    names = ["a.json", "b.json", "c.json", "d.json", "e.json"]
    script = "/static/js/folders.js"
    paths, alone, name, is_full = page.evaluate(DROPPED, [script, names])
    assert sorted(paths) == [*(f"run1/{one}" for one in names), "top.json"]
    assert (alone, name, is_full) == ("x", "results.zip", True)
