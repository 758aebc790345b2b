"""The privacy pages: rules for everyone, settings for maintainers, a history."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.accounts.models import PrivacyChange, Project
from apps.accounts.permissions import Role
from apps.engine.privacy.rules import RULES
from apps.engine.privacy.structure import NO_BODY
from apps.pipeline.reading import read_upload
from apps.traces.models import Trace, Upload
from tests.factories import NOW, chat_bytes, make_member

pytestmark = pytest.mark.django_db

CANARY = "the canary sings of pay and illness"


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


def page(web, project) -> str:
    return web.get(reverse("project-settings", args=[project.slug])).content.decode()


def change(web, project, **fields):
    url = reverse("privacy-change", args=[project.slug])
    return web.post(url, fields, follow=True)


class TestReference:
    def test_every_rule_is_listed_with_what_it_looks_for(self, web):
        text = web.get(reverse("privacy")).content.decode()
        for rule in RULES:
            assert f'id="{rule.slug}"' in text
            assert rule.source in text
        assert "strip_trace.py" in text

    def test_the_upload_page_leads_to_it(self, web, project):
        text = web.get(reverse("uploads", args=[project.slug])).content.decode()
        assert reverse("privacy") in text


class TestSettings:
    def test_secrets_are_replaced_by_default(self, web, project):
        text = page(web, project)
        assert "secrets in them are replaced" in text
        assert "Nothing that is stored already is changed" in text

    def test_a_change_is_kept_and_leaves_a_line(self, web, project, owner):
        answer = change(web, project, structure_only="on", raw_bytes="not_kept")
        assert "no bodies are stored" in answer.content.decode()
        project = Project.objects.get(pk=project.pk)
        assert project.structure_only
        assert not project.redact_secrets
        assert project.raw_bytes == "not_kept"
        [line] = PrivacyChange.objects.all()
        assert line.changed_by == owner
        assert f"by {owner.label}" in page(web, project)

    def test_the_same_choice_twice_is_one_line(self, web, project):
        for _ in range(2):
            change(web, project, redact_secrets="on", structure_only="on")
        assert PrivacyChange.objects.count() == 1

    def test_encrypting_without_a_key_is_refused_in_words(self, web, project):
        answer = change(web, project, redact_secrets="on", raw_bytes="encrypted")
        assert answer.status_code == 422
        assert "EVALSITE_RAW_KEY" in answer.content.decode()
        assert not PrivacyChange.objects.exists()

    def test_a_reviewer_sees_what_is_kept_and_why_not_to_change_it(
        self, client, project
    ):
        client.force_login(make_member(project, Role.REVIEWER))
        text = page(client, project)
        assert "secrets in them are replaced" in text
        assert "Only a maintainer or higher may change what is kept" in text
        assert reverse("privacy-change", args=[project.slug]) not in text
        assert change(client, project, structure_only="on").status_code == 403

    def test_nothing_laxer_than_the_site_is_offered(self, web, project, settings):
        settings.RAW_BYTES = "not_kept"
        text = page(web, project)
        assert 'value="encrypted"' not in text
        assert "As the site does: removed once they are read" in text


class TestStructureOnly:
    @pytest.fixture
    def upload(self, web, project, uploads_dir):
        Project.objects.filter(pk=project.pk).update(structure_only=True)
        conversation = [
            {"role": "user", "content": CANARY},
            {"role": "assistant", "content": CANARY},
        ]
        file = SimpleUploadedFile("chat.jsonl", chat_bytes(conversation))
        web.post(reverse("uploads", args=[project.slug]), {"file": file})
        upload = Upload.objects.get()
        for path in uploads_dir.rglob("*"):
            assert path.is_dir() or CANARY.encode() not in path.read_bytes()
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
        return upload

    def test_pages_say_that_no_body_was_kept(self, web, project, upload):
        trace = Trace.objects.get(upload=upload)
        url = reverse("trace", args=[project.slug, trace.pk])
        text = web.get(url).content.decode()
        assert "Structure only: bodies were dropped" in text
        assert CANARY not in text
        body = web.get(reverse("step-body", args=[project.slug, trace.pk, 0]))
        assert NO_BODY in body.content.decode()

    def test_the_download_holds_the_structure(self, web, project, upload):
        answer = web.get(reverse("upload-raw", args=[project.slug, upload.pk]))
        data = b"".join(answer.streaming_content)
        assert json.loads(data)["evalsite"] == 1
        assert CANARY.encode() not in data

    def test_what_cannot_be_read_is_refused_in_words(self, web, project):
        Project.objects.filter(pk=project.pk).update(structure_only=True)
        file = SimpleUploadedFile("x.txt", CANARY.encode())
        answer = web.post(reverse("uploads", args=[project.slug]), {"file": file})
        assert answer.status_code == 400
        assert "keeps structure only" in answer.content.decode()
        assert not Upload.objects.exists()
