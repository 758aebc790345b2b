"""What lies on the disk and in the database, by a project's and the site's settings."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.accounts.models import Project, RawBytes
from apps.accounts.operations import PrivacyChoice, set_privacy
from apps.accounts.permissions import NotAllowed
from apps.engine.privacy.sealed import new_key
from apps.engine.privacy.structure import SENTENCE
from apps.pipeline.flow import EmptyUpload, read_again, submit_upload
from apps.pipeline.reading import read_upload
from apps.traces.encryption import WrongKey, open_bytes, seal_bytes
from apps.traces.models import BodyChunk, RejectedRecord, Step, Trace, Upload
from apps.traces.queries import body_of_step, engine_trace
from apps.traces.raw_bytes import UNREAD_RAW_LASTS, forget_old_raw
from apps.traces.storage import (
    keeping_of,
    open_kept,
    open_raw,
    path_of,
    receive,
)
from apps.traces.storage import (
    new_key as new_key_text,
)
from apps.traces.transitions import NotPossibleNow, RawKept
from evalsite.sealing_keys import raw_keys
from tests.factories import NOW, make_project

pytestmark = pytest.mark.django_db

CANARY = "the canary sings of pay and illness"
KEY = "sk-proj-4bQ9xT2mZ7kV1cN8wR5yH3jL6pD0sF"
CHAT = {
    "messages": [
        {"role": "user", "content": f"{CANARY}, my key is {KEY}"},
        {"role": "assistant", "content": f"{CANARY}. Write to jane@acme.com."},
    ]
}
DATA = json.dumps(CHAT).encode() + b"\n"


@pytest.fixture
def site_keys(settings):
    settings.RAW_KEYS = [new_key()]
    return settings.RAW_KEYS


def choose(project: Project, **choice) -> Project:
    user = project.members.get()
    set_privacy(project=project, choice=PrivacyChoice(**choice), user=user, now=NOW)
    return Project.objects.get(pk=project.pk)


def send(
    project: Project, data: bytes = DATA, *, name: str = "chat.jsonl", **more
) -> Upload:
    received = receive([data], limit=10**9, name=name, keeping=keeping_of(project))
    upload, _ = submit_upload(
        project=project, received=received, user=None, now=NOW, **more
    )
    return upload


def read(upload: Upload) -> Upload:
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    return upload


def raw_of(sha256: str) -> bytes:
    with open_raw(sha256) as stream:
        return stream.read()


def on_disk(folder) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def in_database() -> str:
    """Everything that tables of traces say, bodies unpacked."""
    rows = []
    for model in (Upload, Trace, Step, RejectedRecord):
        rows += [str(sorted(row.items())) for row in model.objects.values()]
    for step in Step.objects.all():
        rows.append(str(body_of_step(trace_id=step.trace_id, seq=step.seq)))
    return "\n".join(rows)


class TestRedaction:
    def test_secrets_never_reach_the_database_and_are_counted(self, project):
        upload = read(send(project))
        assert upload.redactions == {"openai-key": 1, "e-mail": 1}
        stored = in_database()
        assert CANARY in stored
        assert KEY not in stored
        assert "jane@acme.com" not in stored

    def test_a_project_can_turn_it_off(self, project):
        upload = read(send(choose(project, redact_secrets=False)))
        assert upload.redactions == {}
        assert KEY in in_database()

    def test_excerpts_of_rejected_records_are_redacted_too(self, project):
        upload = read(send(project, DATA + b'{"messages": "' + KEY.encode() + b'"}\n'))
        assert upload.rejected_count == 1
        assert KEY not in in_database()

    def test_reading_again_counts_anew(self, project):
        upload = read(send(project))
        read_again(upload=upload, format_override="")
        assert read(upload).redactions == {"openai-key": 1, "e-mail": 1}


class TestStructureOnly:
    @pytest.fixture
    def project(self, project):
        return choose(project, structure_only=True)

    def test_bodies_never_touch_the_disk_or_the_database(self, project, uploads_dir):
        received = receive([DATA], limit=10**6, name="a", keeping=keeping_of(project))
        assert CANARY.encode() not in on_disk(uploads_dir)
        upload, _ = submit_upload(
            project=project, received=received, user=None, now=NOW
        )
        assert CANARY.encode() not in on_disk(uploads_dir)
        assert CANARY not in in_database()
        read(upload)
        assert upload.trace_count == 1
        assert upload.model_call_count == 1
        assert CANARY not in in_database()
        assert not BodyChunk.objects.filter(data__contains=CANARY.encode()).exists()
        assert not list((uploads_dir / "incoming").iterdir())

    def test_the_receipt_says_so_and_names_the_reader(self, project):
        upload = read(send(project))
        sentences = [note["sentence"] for note in upload.notes]
        assert any(SENTENCE in sentence for sentence in sentences)
        assert sentences == [SENTENCE]
        assert upload.format == "openai-chat"
        assert upload.readers == [
            {"format": "openai-chat", "version": 3, "files": 1, "traces": 1}
        ]
        trace = Trace.objects.get(upload=upload)
        assert trace.format == "openai-chat"
        assert SENTENCE in trace.notes
        assert engine_trace(trace).steps[0].body is None

    def test_the_same_bytes_are_the_same_upload(self, project):
        one = read(send(project))
        assert send(project) == one
        assert one.sha256 != one.stored_sha256

    def test_an_archive_is_read_the_same_way(self, project, uploads_dir):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("a.jsonl", DATA)
            archive.writestr("b.jsonl", DATA + DATA)
        upload = read(send(project, whole.getvalue(), name="runs.zip"))
        assert upload.trace_count == 3
        assert CANARY.encode() not in on_disk(uploads_dir)

    def test_rejected_records_have_a_place_and_no_beginning(self, project):
        bad = b'{"messages": "' + CANARY.encode() + b'"}\n'
        upload = read(send(project, DATA + bad))
        [record] = RejectedRecord.objects.filter(upload=upload)
        assert record.place
        assert record.excerpt == ""
        assert CANARY not in in_database()

    def test_what_cannot_be_read_is_refused_and_nothing_is_kept(
        self, project, uploads_dir
    ):
        with pytest.raises(EmptyUpload, match="structure only"):
            send(project, CANARY.encode())
        assert not Upload.objects.exists()
        assert CANARY.encode() not in on_disk(uploads_dir)
        assert not list((uploads_dir / "incoming").iterdir())

    def test_a_file_over_the_limit_is_refused_with_the_way_out(self, project, settings):
        settings.MAX_STRUCTURE_BYTES = 100
        with pytest.raises(EmptyUpload, match=r"strip_trace\.py"):
            send(project, DATA * 3)

    def test_switching_it_on_leaves_what_is_stored(self, owner):
        open_project = make_project(owner=owner)
        upload = read(send(open_project))
        choose(open_project, structure_only=True)
        assert raw_of(upload.raw_sha256) == DATA
        assert CANARY in in_database()

    def test_bytes_received_before_it_was_switched_on_are_reduced_too(self, owner):
        late = make_project(owner=owner)
        received = receive([DATA], limit=10**6, name="a", keeping=keeping_of(late))
        late = choose(late, structure_only=True)
        upload, _ = submit_upload(project=late, received=received, user=None, now=NOW)
        assert upload.stored_sha256
        assert not received.path.exists()

    def test_parts_are_sealed_with_a_key_that_comes_back_with_each(self, project):
        key = new_key_text()
        part = receive(
            [DATA], limit=10**6, name="a", keeping=keeping_of(project, key=key)
        )
        assert CANARY.encode() not in part.path.read_bytes()
        with open_kept(part.path, keeping_of(project, key=key)) as plain:
            assert plain.read() == DATA
        with pytest.raises(WrongKey):
            open_kept(part.path, keeping_of(project, key=new_key_text()))
        with pytest.raises(ValueError, match="32 bytes"):
            keeping_of(project, key="short")


class TestRawBytes:
    def test_they_are_kept_as_they_came_by_default(self, project):
        upload = read(send(project))
        assert upload.raw_kept == RawKept.KEPT
        assert path_of(upload.sha256).read_bytes() == DATA

    def test_encrypted_bytes_lie_nowhere_in_clear(
        self, project, uploads_dir, site_keys
    ):
        upload = send(choose(project, raw_bytes=RawBytes.ENCRYPTED))
        assert upload.raw_kept == RawKept.ENCRYPTED
        assert CANARY.encode() not in on_disk(uploads_dir)
        assert read(upload).trace_count == 1
        assert raw_of(upload.sha256) == DATA

    def test_the_site_can_ask_for_it_for_all(self, project, settings, site_keys):
        settings.RAW_BYTES = "encrypted"
        assert send(project).raw_kept == RawKept.ENCRYPTED

    def test_a_project_is_never_laxer_than_the_site(self, project, settings, site_keys):
        settings.RAW_BYTES = "not_kept"
        project = choose(project, raw_bytes=RawBytes.ENCRYPTED)
        assert send(project).raw_kept == RawKept.UNTIL_READ

    def test_a_new_key_reads_old_bytes_as_long_as_the_old_one_is_listed(
        self, project, settings, site_keys
    ):
        upload = send(choose(project, raw_bytes=RawBytes.ENCRYPTED))
        settings.RAW_KEYS = [new_key(), *site_keys]
        assert raw_of(upload.sha256) == DATA
        assert read(upload).trace_count == 1

    def test_a_lost_key_is_a_sentence_on_the_receipt(
        self, project, settings, site_keys
    ):
        upload = send(choose(project, raw_bytes=RawBytes.ENCRYPTED))
        settings.RAW_KEYS = [new_key()]
        assert "EVALSITE_RAW_KEY does not list" in read(upload).failure

    def test_encryption_needs_a_key(self, project):
        with pytest.raises(NotAllowed, match="EVALSITE_RAW_KEY"):
            choose(project, raw_bytes=RawBytes.ENCRYPTED)
        Project.objects.update(raw_bytes=RawBytes.ENCRYPTED)
        with pytest.raises(ImproperlyConfigured, match="EVALSITE_RAW_KEY"):
            keeping_of(Project.objects.get(pk=project.pk))

    def test_bytes_that_are_not_kept_go_once_they_are_read(self, project, uploads_dir):
        upload = send(choose(project, raw_bytes=RawBytes.NOT_KEPT))
        assert path_of(upload.sha256).exists()
        assert read(upload).raw_kept == RawKept.GONE
        assert CANARY.encode() not in on_disk(uploads_dir)
        with pytest.raises(NotPossibleNow, match="cannot be read again"):
            read_again(upload=upload, format_override="")

    def test_a_copy_of_them_does_not_come_back(self, project, uploads_dir):
        project = choose(project, raw_bytes=RawBytes.NOT_KEPT)
        upload = read(send(project))
        assert send(project) == upload
        assert not path_of(upload.sha256).exists()
        assert not list((uploads_dir / "incoming").iterdir())

    def test_what_another_project_keeps_stays(self, project, owner):
        keeper = read(send(make_project(owner=owner)))
        upload = read(send(choose(project, raw_bytes=RawBytes.NOT_KEPT)))
        assert upload.raw_kept == RawKept.GONE
        assert raw_of(keeper.raw_sha256) == DATA

    def test_a_failed_file_waits_for_another_try_and_goes_by_age(self, project):
        upload = read(send(choose(project, raw_bytes=RawBytes.NOT_KEPT), b"no trace"))
        assert upload.state == "failed"
        assert path_of(upload.sha256).exists()
        later = upload.finished_at + UNREAD_RAW_LASTS
        assert forget_old_raw(now=later - timedelta(seconds=1)) == 0
        assert forget_old_raw(now=later + timedelta(seconds=1)) == 1
        assert not path_of(upload.sha256).exists()
        assert forget_old_raw(now=later + timedelta(seconds=1)) == 0

    def test_bytes_in_a_row_are_sealed_and_opened(self, site_keys, settings):
        stored = seal_bytes(DATA)
        assert CANARY.encode() not in stored
        assert open_bytes(stored) == DATA
        settings.RAW_KEYS = []
        assert open_bytes(seal_bytes(DATA)) == DATA
        with pytest.raises(WrongKey):
            open_bytes(stored)


class TestKeysInTheEnvironment:
    def test_several_are_read_in_order(self):
        one, two = new_key_text(), new_key_text()
        assert len(set(raw_keys(f"{one}, {two}", is_needed=True))) == 2
        assert raw_keys("", is_needed=False) == []

    def test_a_missing_key_is_refused_with_the_way_to_make_one(self):
        with pytest.raises(ImproperlyConfigured, match="Make one with"):
            raw_keys(" ", is_needed=True)

    def test_a_bad_key_is_named_by_its_place_and_never_shown(self):
        with pytest.raises(ImproperlyConfigured) as refused:
            raw_keys(f"{new_key_text()},hunter2secret", is_needed=False)
        assert "Key 2" in str(refused.value)
        assert "hunter2" not in str(refused.value)
