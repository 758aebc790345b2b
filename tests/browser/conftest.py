"""One Chromium, one web server and one real worker for all browser tests.

They share the test database and stay apart by having projects and people of their own,
so nothing is emptied between tests. They run last: Playwright keeps an event loop in
this thread from its start to the end of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection
from django.test.utils import override_settings
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from tests.browser.chromium import browsing, context_of
from tests.browser.scenes import furnish
from tests.browser.watching import Watch
from tests.conftest import SHARED
from tests.factories import make_member, make_project, make_user
from tests.flows.conftest import database_url, running

HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: HERE in item.path.parents)


@dataclass(frozen=True)
class Site:
    """The running product."""

    address: str
    uploads: Path


@pytest.fixture(scope="session")
def site(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[Site]:
    """Web server and worker on the test database; what was stored is removed after."""
    folder = tmp_path_factory.mktemp("site")
    static = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    chosen = override_settings(
        UPLOADS_DIR=folder / "uploads",
        STATIC_ROOT=folder,
        STORAGES={**django_settings.STORAGES, "staticfiles": static},
    )
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock(), chosen:
        # Playwright's loop makes Django think that this thread is asynchronous.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "REDIS_URL": str(django_settings.REDIS_URL),
            "EVALSITE_DATA_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        }
        with running(environment, folder / "worker.log") as processes:
            processes.worker()
            server = LiveServer("localhost")
            try:
                yield Site(address=server.url, uploads=folder / "uploads")
            finally:
                server.stop()
        _end_other_sessions()
        call_command("flush", interactive=False, verbosity=0)


def _end_other_sessions() -> None:
    """What served or worked may hold the database that is about to be dropped."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def db(site) -> None:
    """The site's own database, which no test rolls back: other processes read it."""


@pytest.fixture(autouse=True)
def uploads_dir(site, settings, db):
    """The raw uploads lie where the worker reads them."""
    settings.UPLOADS_DIR = site.uploads
    return site.uploads


@pytest.fixture(scope="session")
def browser(site) -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.fixture(scope="session")
def furnished(site) -> Project:
    """A project with something in every state, to look at and not to change."""
    owner, reviewer = make_user("furnisher"), make_user("ana")
    shared = SHARED / "data"
    return furnish(
        owner=owner, reviewer=reviewer, shared=shared if shared.is_dir() else None
    )


@pytest.fixture
def owner(site) -> User:
    return make_user()


@pytest.fixture
def project(owner) -> Project:
    return make_project(owner=owner)


@pytest.fixture
def reviewer(project) -> User:
    return make_member(project, Role.REVIEWER)


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(site, browser) -> Iterator[OpenPage]:
    """Opens windows by user; fails when anything went wrong in any of them."""
    watch, contexts = Watch(), []

    def opened(user: User | None, **options) -> Page:
        context = context_of(browser, address=site.address, user=user, **options)
        watch.over(context)
        contexts.append(context)
        page = context.new_page()
        page.watch = watch
        return page

    yield opened
    for context in contexts:
        context.close()
    watch.check()


@pytest.fixture
def page(open_page, owner) -> Page:
    """A window of the project's owner."""
    return open_page(owner)
