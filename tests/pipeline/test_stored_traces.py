"""Every check says of a stored trace what it said of the one that was read."""

from __future__ import annotations

import msgspec
import pytest

from apps.accounts.models import Project
from apps.accounts.operations import PrivacyChoice, set_privacy
from apps.engine.traits import traits_of
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.screening.operations import evidence_document
from apps.traces.models import Trace
from apps.traces.queries import engine_trace
from tests.factories import (
    NOW,
    make_project,
    upload_bytes,
)
from tests.formats.all_samples import FILES

pytestmark = pytest.mark.django_db


class TestTheStoredTrace:
    """Every check says of the stored trace what it said of the one that was read."""

    @pytest.mark.parametrize(
        "choice",
        [
            PrivacyChoice(),
            PrivacyChoice(redact_secrets=True),
            PrivacyChoice(structure_only=True),
        ],
        ids=["whole", "redacted", "structure only"],
    )
    def test_of_every_sample_of_every_format(self, owner, choice):
        project = make_project(owner=owner)
        set_privacy(project=project, choice=choice, user=owner, now=NOW)
        for slug, samples in FILES.items():
            for sample in samples:
                upload_bytes(project, sample, name=f"{slug}.json")
        assert Trace.objects.count() > 60
        self.assert_the_same()

    @pytest.mark.slow
    def test_of_real_files(self, owner, shared_data):
        project = make_project(owner=owner)
        files = sorted(path for path in shared_data.rglob("*") if path.is_file())
        small = [path for path in files if path.stat().st_size < 400_000]
        for path in small[::7]:
            upload_bytes(project, path.read_bytes(), name=path.name)
        assert Trace.objects.count() > 30
        self.assert_the_same()

    def assert_the_same(self) -> None:
        lineup = lineup_of(Project.objects.get().pk)
        for trace in Trace.objects.select_related("task"):
            content = engine_trace(trace)
            assert sorted(traits_of(content)) == sorted(trace.traits)
            now = {
                (check.slug, answer.evidence.scope[:80]): (
                    answer.answer.value,
                    answer.level.value,
                    answer.headline,
                    answer.input_hash,
                    msgspec.json.decode(
                        msgspec.json.encode(evidence_document(check, answer))
                    ),
                )
                for check in lineup.checks
                for answer in check.run(content)
            }
            rows = Screening.objects.filter(trace=trace).values_list(
                "check_slug",
                "scope",
                "answer",
                "level",
                "headline",
                "input_hash",
                "evidence",
            )
            assert now == {row[:2]: row[2:] for row in rows}, trace.format
