"""Resumable uploads, request by request: offsets, owners, limits, and the end."""

from __future__ import annotations

import hashlib
import os
import threading

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.traces.models import Upload
from apps.traces.parts import LASTS_SECONDS, remove_abandoned_parts
from apps.traces.storage import path_of
from tests.factories import make_member, make_project
from tests.web.sending import CONTENT, TUS, TYPE, Sender


@pytest.fixture
def sender(project, owner):
    return Sender(project, owner)


@pytest.fixture
def url(sender):
    return sender.begin(filename="a.jsonl")["Location"]


def stored_files(uploads_dir) -> list:
    return [path for path in uploads_dir.rglob("*") if path.is_file()]


class TestTheWay:
    """From the first byte to the receipt."""

    def test_a_file_in_three_pieces_becomes_one_upload(self, sender, project):
        begun = sender.begin(filename="実.jsonl", format="openai-chat")
        assert begun.status_code == 201
        assert begun["Upload-Offset"] == "0"
        url, at = begun["Location"], 0
        for piece in (CONTENT[:1000], CONTENT[1000:1001], CONTENT[1001:]):
            assert not Upload.objects.exists()
            answer = sender.add(url, piece, at)
            at += len(piece)
            assert answer.status_code == 204
            assert answer["Upload-Offset"] == str(at)
            assert sender.ask(url)["Upload-Offset"] == str(at)
        upload = Upload.objects.get()
        assert upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert path_of(upload.sha256).read_bytes() == CONTENT
        assert (upload.name, upload.format_override) == ("実.jsonl", "openai-chat")
        receipt = reverse("upload", args=[project.slug, upload.pk])
        assert answer["Upload-Receipt"] == receipt
        assert sender.ask(url)["Upload-Receipt"] == receipt

    def test_only_the_stored_file_is_left_of_the_pieces(self, sender, url, uploads_dir):
        sender.add(url, CONTENT[:500], 0)
        sender.add(url, CONTENT[500:], 500)
        left = [path for path in stored_files(uploads_dir) if path.suffix != ".json"]
        assert left == [path_of(Upload.objects.get().sha256)]

    def test_the_same_bytes_lead_to_the_upload_that_is_here(self, sender):
        for _ in range(2):
            answer = sender.add(sender.begin()["Location"], CONTENT, 0)
        assert Upload.objects.count() == 1
        assert answer["Upload-Receipt"].endswith(f"/{Upload.objects.get().pk}/")

    def test_options_say_what_is_spoken(self, sender, settings):
        url = reverse("upload-parts", args=[sender.project.slug])
        answer = sender.client.options(url)
        assert answer.status_code == 204
        assert answer["Tus-Version"] == "1.0.0"
        assert answer["Tus-Max-Size"] == str(settings.MAX_UPLOAD_BYTES)
        assert answer["Tus-Extension"] == "creation,termination,expiration"

    def test_a_body_longer_than_a_piece_is_kept_in_pieces(
        self, sender, url, monkeypatch
    ):
        monkeypatch.setattr("apps.web.views.resumable.PIECE", 700)
        assert sender.add(url, CONTENT, 0).status_code == 204
        assert path_of(Upload.objects.get().sha256).read_bytes() == CONTENT


class TestGoingOn:
    """What arrived stays; what is sent twice is not added twice."""

    def test_the_same_file_of_the_same_sender_goes_on(self, sender):
        first = sender.begin(filename="a", fingerprint="a-17")
        sender.add(first["Location"], CONTENT[:900], 0)
        again = sender.begin(filename="a", fingerprint="a-17")
        assert again.status_code == 200
        assert again["Location"] == first["Location"]
        assert again["Upload-Offset"] == "900"

    @pytest.mark.parametrize(
        "other",
        [
            {"fingerprint": "a-18"},
            {"size": len(CONTENT) + 1},
            {"format": "openai-chat"},
            {"filename": "b"},
        ],
    )
    def test_another_file_begins_anew(self, sender, other):
        said = {"filename": "a", "fingerprint": "a-17"}
        first = sender.begin(**said)
        assert sender.begin(**{**said, **other})["Location"] != first["Location"]

    def test_a_file_that_was_finished_begins_anew(self, sender):
        said = {"filename": "a", "fingerprint": "a-17"}
        url = sender.begin(**said)["Location"]
        sender.add(url, CONTENT, 0)
        again = sender.begin(**said)
        assert (again.status_code, again["Upload-Offset"]) == (201, "0")

    def test_without_a_fingerprint_every_file_is_another(self, sender):
        assert sender.begin()["Location"] != sender.begin()["Location"]

    @pytest.mark.parametrize("at", [0, 899, 901])
    def test_bytes_at_a_wrong_offset_are_refused_and_change_nothing(
        self, sender, url, at, uploads_dir
    ):
        sender.add(url, CONTENT[:900], 0)
        before = stored_files(uploads_dir)
        answer = sender.add(url, CONTENT[at : at + 10], at)
        assert answer.status_code == 409
        assert answer["Upload-Offset"] == "900"
        assert "number 900" in answer.json()["sentence"]
        assert stored_files(uploads_dir) == before

    def test_a_killed_server_between_the_last_byte_and_the_end_loses_nothing(
        self, sender, url, monkeypatch
    ):
        def killed(**_words: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("apps.web.views.resumable.submit_upload", killed)
            with pytest.raises(KeyboardInterrupt):
                sender.add(url, CONTENT, 0)
        asked = sender.ask(url)
        assert asked["Upload-Offset"] == str(len(CONTENT))
        assert "Upload-Receipt" not in asked
        done = sender.add(url, b"", len(CONTENT))
        assert "Upload-Receipt" in done
        assert Upload.objects.get().size == len(CONTENT)


@pytest.mark.django_db(transaction=True)
def test_many_senders_of_one_file_at_once_make_one_whole_file(owner, project):
    url = Sender(project, owner).begin(filename="a", fingerprint="f")["Location"]
    step, ends = 997, []

    def send_all() -> None:
        try:
            send_until_whole(Sender(project, owner))
        finally:
            connections.close_all()

    def send_until_whole(sender: Sender) -> None:
        answer = sender.ask(url)
        while "Upload-Receipt" not in answer:
            at = int(answer["Upload-Offset"])
            answer = sender.add(url, CONTENT[at : at + step], at)
            assert answer.status_code in {204, 409}
        ends.append(answer["Upload-Receipt"])

    threads = [threading.Thread(target=send_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    upload = Upload.objects.get()
    assert upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert ends == [reverse("upload", args=[project.slug, upload.pk])] * 4


class TestRefusals:
    """Each with a status of the protocol and a sentence."""

    @pytest.mark.parametrize("version", ["", "0.2.2", "1.0.1"])
    def test_another_version_is_412_with_ours(self, sender, version):
        answer = sender.begin(version=version)
        assert answer.status_code == 412
        assert answer["Tus-Version"] == "1.0.0"
        assert answer.json()["sentence"].endswith(".")

    @pytest.mark.parametrize("part", ["0" * 32, "x", "..", "%2e%2e", "0" * 400])
    def test_what_was_never_begun_is_404(self, sender, part):
        url = reverse("upload-parts", args=[sender.project.slug]) + f"{part}/"
        assert sender.ask(url).status_code == 404
        assert sender.add(url, b"x", 0).status_code == 404

    def test_what_another_member_began_is_404(self, sender, url, project):
        other = Sender(project, make_member(project, Role.MAINTAINER))
        assert other.ask(url).status_code == 404
        assert other.add(url, CONTENT, 0).status_code == 404
        assert other.client.delete(url, headers=TUS).status_code == 404
        assert sender.ask(url).status_code == 200

    def test_it_is_not_found_through_another_project_of_the_same_person(
        self, sender, url, owner, project
    ):
        other = make_project(owner=owner, name="Other")
        foreign = url.replace(f"/{project.slug}/", f"/{other.slug}/")
        assert sender.ask(foreign).status_code == 404

    def test_the_same_fingerprint_of_another_member_is_another_file(
        self, sender, project
    ):
        other = Sender(project, make_member(project, Role.MAINTAINER))
        mine = sender.begin(fingerprint="f")["Location"]
        assert other.begin(fingerprint="f")["Location"] != mine

    def test_a_file_over_the_limit_is_refused_before_any_byte(
        self, sender, settings, uploads_dir
    ):
        settings.MAX_UPLOAD_BYTES = 1_000
        answer = sender.begin(size=1_001)
        assert answer.status_code == 413
        assert "larger than 1 kB" in answer.json()["sentence"]
        assert stored_files(uploads_dir) == []

    def test_more_bytes_than_were_said_are_refused(self, sender):
        url = sender.begin(size=10)["Location"]
        assert sender.add(url, b"x" * 11, 0).status_code == 413
        assert sender.ask(url)["Upload-Offset"] == "0"

    @pytest.mark.parametrize("size", ["", "-1", "²", "x", "9" * 19, "0"])
    def test_a_size_that_is_none_is_400(self, sender, size):
        answer = sender.begin(size=size)
        assert answer.status_code == 400
        assert answer.json()["sentence"].endswith(".")

    @pytest.mark.parametrize("metadata", ["filename ***", "filename /w==", "a b c"])
    def test_metadata_that_is_none_is_400(self, sender, metadata):
        url = reverse("upload-parts", args=[sender.project.slug])
        headers = {**TUS, "Upload-Length": "5", "Upload-Metadata": metadata}
        assert sender.client.post(url, headers=headers).status_code == 400

    def test_an_unknown_format_is_400(self, sender):
        assert sender.begin(format="xml").status_code == 400

    def test_bytes_of_another_type_are_415(self, sender, url):
        answer = sender.client.patch(
            url, b"x", "text/plain", headers={**TUS, "Upload-Offset": "0"}
        )
        assert answer.status_code == 415

    @pytest.mark.parametrize("offset", ["", "-1", "x", "9" * 30])
    def test_an_offset_that_is_none_is_400(self, sender, url, offset):
        assert sender.add(url, b"x", offset).status_code == 400

    def test_a_project_keeps_only_so_many_unfinished_files(self, sender, monkeypatch):
        monkeypatch.setattr("apps.traces.parts.MOST_OPEN", 2)
        urls = [sender.begin()["Location"] for _ in range(2)]
        full = sender.begin()
        assert full.status_code == 429
        assert "2 uploads of this project are unfinished" in full.json()["sentence"]
        sender.add(urls[0], CONTENT, 0)
        assert sender.begin().status_code == 201

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
    def test_below_maintainer_nothing_begins(self, project, role):
        assert Sender(project, make_member(project, role)).begin().status_code == 403

    def test_a_stranger_is_sent_to_the_sign_in_page(self, project, url):
        stranger = Sender(project)
        for answer in (stranger.begin(), stranger.ask(url), stranger.add(url, b"x", 0)):
            assert answer.status_code == 302
            assert answer["Location"].startswith("/sign-in/")

    def test_a_member_of_another_project_finds_nothing(self, project, url):
        elsewhere = make_project(name="Elsewhere")
        stranger = Sender(project, elsewhere.members.get())
        assert stranger.begin().status_code == 404
        assert stranger.ask(url).status_code == 404

    def test_a_form_of_another_site_adds_nothing(self, owner, url):
        checked = Client(enforce_csrf_checks=True)
        checked.force_login(owner)
        answer = checked.patch(url, b"x", TYPE, headers={**TUS, "Upload-Offset": "0"})
        assert answer.status_code == 403


class TestStructureOnly:
    """Pieces lie sealed with a key that only the sender has."""

    @pytest.fixture(autouse=True)
    def structure_only(self, project):
        project.structure_only = True
        project.save()

    def test_no_piece_lies_in_clear_and_the_end_is_the_structure(
        self, sender, uploads_dir
    ):
        begun = sender.begin(filename="a.jsonl")
        url, key = begun["Location"], {"Upload-Key": begun["Upload-Key"]}
        sender.add(url, CONTENT[:900], 0, **key)
        words = b"Where is order 17"
        assert words in CONTENT[:900]
        for path in stored_files(uploads_dir):
            content = path.read_bytes()
            assert words not in content
            assert begun["Upload-Key"].encode() not in content
        done = sender.add(url, CONTENT[900:], 900, **key)
        assert "Upload-Receipt" in done
        assert Upload.objects.get().sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert all(words not in p.read_bytes() for p in stored_files(uploads_dir))

    def test_without_the_key_nothing_goes_on(self, sender):
        url = sender.begin()["Location"]
        answer = sender.add(url, CONTENT, 0)
        assert answer.status_code == 409
        assert "Upload-Key" in answer.json()["sentence"]

    def test_with_another_key_it_has_to_begin_again(self, sender):
        begun, other = sender.begin(), sender.begin()
        url = begun["Location"]
        sender.add(url, CONTENT[:900], 0, **{"Upload-Key": begun["Upload-Key"]})
        key = {"Upload-Key": other["Upload-Key"]}
        answer = sender.add(url, CONTENT[900:], 900, **key)
        assert answer.status_code == 409
        assert sender.ask(url).status_code == 404

    def test_a_key_that_is_none_is_400(self, sender):
        url = sender.begin()["Location"]
        assert sender.add(url, b"x", 0, **{"Upload-Key": "x"}).status_code == 400

    def test_a_file_is_never_found_again_by_its_fingerprint(self, sender):
        first, second = sender.begin(fingerprint="f"), sender.begin(fingerprint="f")
        assert first["Location"] != second["Location"]

    def test_a_piece_from_before_it_is_forgotten(self, sender, project, uploads_dir):
        project.structure_only = False
        project.save()
        url = sender.begin()["Location"]
        sender.add(url, CONTENT[:900], 0)
        project.structure_only = True
        project.save()
        assert sender.ask(url).status_code == 404
        assert not stored_files(uploads_dir)


class TestTheEnd:
    """Given up by hand, or after a day without a byte."""

    def test_what_is_given_up_is_gone_with_its_bytes(self, sender, url, uploads_dir):
        sender.add(url, CONTENT[:900], 0)
        assert sender.client.delete(url, headers=TUS).status_code == 204
        assert sender.ask(url).status_code == 404
        assert stored_files(uploads_dir) == []

    def test_a_day_without_a_byte_ends_it(self, sender, uploads_dir):
        old, young = sender.begin()["Location"], sender.begin()["Location"]
        sender.add(old, CONTENT[:900], 0)
        folder = next(uploads_dir.rglob(old.split("/")[-2]))
        a_day_ago = folder.stat().st_mtime - LASTS_SECONDS - 1
        os.utime(folder, (a_day_ago, a_day_ago))
        assert remove_abandoned_parts() == 1
        assert sender.ask(old).status_code == 404
        assert sender.ask(young).status_code == 200
