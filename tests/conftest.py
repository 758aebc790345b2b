"""What all tests share: a data folder of their own, and people with roles."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.accounts.permissions import Role
from tests.factories import make_member, make_project, make_user

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


FIRST = ("tests/flows/", "tests/evalsite/", "tests/web/", "tests/pipeline/")
"""Where single files take minutes: begun last, one of them would be waited for alone."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


@pytest.fixture(autouse=True)
def uploads_dir(tmp_path, settings):
    """Raw uploads of a test lie in the test's own folder."""
    settings.UPLOADS_DIR = tmp_path / "uploads"
    return settings.UPLOADS_DIR


@pytest.fixture(autouse=True)
def unhashed_static_files(settings, tmp_path_factory):
    """Pages of a test link the files as they stand in the checkout."""
    # A folder of its own: the web server looks at every file below it.
    settings.STATIC_ROOT = tmp_path_factory.getbasetemp() / "static-root"
    settings.STATIC_ROOT.mkdir(exist_ok=True)
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {
            "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        },
    }


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """Hashing passwords slowly protects nobody in a test."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real trace files that lie beside the project; skips where they do not."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(
            "The shared trace files lie outside of the repository and are absent."
        )
    return folder


@pytest.fixture
def owner(db):
    return make_user("olga")


@pytest.fixture
def project(owner):
    return make_project(owner=owner, name="Support desk")


@pytest.fixture
def reviewer(project):
    return make_member(project, Role.REVIEWER, "rana")
