"""What all tests share: a data folder of their own, and people with roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.template.base import Template
from django.test.signals import template_rendered
from django.test.utils import override_settings

from apps.accounts.permissions import Role
from tests.emptying import empty_quickly
from tests.factories import make_member, make_project, make_user
from tests.standing import standing

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
Stand = Callable[[Callable[[], Any]], tuple[Any, Path]]


FIRST = ("tests/flows/", "tests/evalsite/", "tests/web/", "tests/pipeline/")
"""Where single files take minutes: begun last, one of them would be waited for alone."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


@pytest.fixture(scope="session")
def uploads_folders(tmp_path_factory) -> Iterator[Path]:
    """One after another, paths at which nothing lies yet."""
    folder = tmp_path_factory.mktemp("uploads")
    return (folder / str(number) for number in count(1))


@pytest.fixture(autouse=True)
def uploads_dir(uploads_folders, settings):
    """Raw uploads of a test lie in a folder of the test's own, once there are any."""
    settings.UPLOADS_DIR = next(uploads_folders)
    return settings.UPLOADS_DIR


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup) -> Iterator[None]:
    """The test database, of which each test that commits empties what it has filled."""
    with pytest.MonkeyPatch.context() as patch:
        empty_quickly(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_settings(tmp_path_factory) -> Iterator[None]:
    """Pages link the files as they stand in the checkout, and passwords are quick.

    Hashing passwords slowly protects nobody in a test.
    """
    # A folder of its own: the web server looks at every file below it.
    folder = tmp_path_factory.getbasetemp() / "static-root"
    folder.mkdir(exist_ok=True)
    static = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(
        STATIC_ROOT=folder,
        STORAGES={**django_settings.STORAGES, "staticfiles": static},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ):
        yield


def render_and_note(template, context):
    """What a test is told of: the template of a whole page, and not of its parts.

    Each time the client copies all that the template was given.
    """
    if context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return template.nodelist.render(context)


@pytest.fixture(scope="session", autouse=True)
def whole_pages(django_test_environment) -> Iterator[None]:
    """The context of an answer is that of its page: `answer.context["page"]`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "_render", render_and_note)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real trace files that lie beside the project; skips where they do not."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(
            "The shared trace files lie outside of the repository and are absent."
        )
    return folder


@pytest.fixture(scope="module")
def stand(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Stand]:
    """Makes something that stands for all tests of a module: see standing.py.

    Gives back what `make` returned and the folder of its raw uploads.
    """
    with ExitStack() as stack:

        def stands(make):
            folder = tmp_path_factory.mktemp("standing")
            kept = standing(make, blocker=django_db_blocker, uploads=folder)
            return stack.enter_context(kept), folder

        yield stands


@pytest.fixture
def owner(db):
    return make_user("olga")


@pytest.fixture
def project(owner):
    return make_project(owner=owner, name="Support desk")


@pytest.fixture
def reviewer(project):
    return make_member(project, Role.REVIEWER, "rana")
