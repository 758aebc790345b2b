"""Every URL as a stranger, as a member of another project, and as each role.

The URLs are walked from the resolver, so a new one cannot be left out: it has to be
named in one of the tables below, or the test says so.
"""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.operations import create_token
from apps.accounts.permissions import Role, Scope
from tests.factories import make_member, make_project
from tests.web.api_names import API, API_OF_PROJECT, API_OF_TOKEN, API_OTHERS
from tests.web.replay_fields import REPLAY_ALSO_POST, REPLAY_ROLES
from tests.web.rooms import make_rooms
from tests.web.walking import ask, names, put_back, signed_in_as, status, url_of

PUBLIC = {"healthz", "readyz", "sign-in", "sign-in-link"}
# Tokens, other roles and strangers at these doors: tests/live/test_door.py and
# tests/api/test_stubs.py.
OF_ANOTHER_PROTOCOL = {"otlp-traces", "stub-tool", "stub-mcp"}
FOR_EVERYONE_SIGNED_IN = {
    "home",
    "sign-out",
    "account",
    "account-password",
    "projects",
    "checks",
    "privacy",
    "check",
    "formats",
    "api",
}
LEAST_ROLE = {
    "overview": ("get", Role.VIEWER),
    "scoring-state": ("get", Role.VIEWER),
    "uploads": ("get", Role.VIEWER),
    "upload": ("get", Role.VIEWER),
    "upload-progress": ("get", Role.VIEWER),
    "upload-raw": ("get", Role.VIEWER),
    "upload-read-again": ("post", Role.MAINTAINER),
    "project-checks": ("get", Role.VIEWER),
    "project-check": ("get", Role.VIEWER),
    "traces": ("get", Role.VIEWER),
    "trace": ("get", Role.VIEWER),
    "step-body": ("get", Role.VIEWER),
    "trace-download": ("get", Role.VIEWER),
    "trace-task": ("post", Role.REVIEWER),
    "trace-task-undo": ("post", Role.REVIEWER),
    "tasks": ("get", Role.VIEWER),
    "task": ("get", Role.VIEWER),
    "task-rename": ("post", Role.REVIEWER),
    "task-join": ("post", Role.REVIEWER),
    "task-part": ("post", Role.REVIEWER),
    "task-forks": ("get", Role.VIEWER),
    "task-note": ("post", Role.REVIEWER),
    "task-note-withdraw": ("post", Role.REVIEWER),
    "patterns": ("get", Role.VIEWER),
    **REPLAY_ROLES,
    "agents": ("get", Role.VIEWER),
    "agent": ("get", Role.VIEWER),
    "agent-new": ("post", Role.MAINTAINER),
    "agent-rename": ("post", Role.MAINTAINER),
    "agent-tools": ("post", Role.MAINTAINER),
    "agent-remove": ("post", Role.MAINTAINER),
    "agent-merge": ("post", Role.MAINTAINER),
    "agent-name": ("post", Role.MAINTAINER),
    "agent-decision": ("get", Role.MAINTAINER),
    "agent-restore": ("post", Role.MAINTAINER),
    "agent-contract-new": ("get", Role.MAINTAINER),
    "agent-contract": ("get", Role.MAINTAINER),
    "agent-contract-remove": ("post", Role.MAINTAINER),
    "agent-file": ("get", Role.VIEWER),
    "agent-yaml": ("get", Role.VIEWER),
    "agent-outcomes": ("get", Role.VIEWER),
    "agent-outcomes-remove": ("post", Role.MAINTAINER),
    "agent-outcomes-restore": ("post", Role.MAINTAINER),
    "agent-outcomes-decision": ("get", Role.MAINTAINER),
    "compare": ("get", Role.VIEWER),
    "compare-json": ("get", Role.VIEWER),
    "compare-markdown": ("get", Role.VIEWER),
    "sets": ("get", Role.VIEWER),
    "set-new": ("get", Role.REVIEWER),
    "trace-set": ("get", Role.VIEWER),
    "set-rename": ("post", Role.REVIEWER),
    "set-delete": ("get", Role.REVIEWER),
    "set-baseline": ("post", Role.MAINTAINER),
    "shadows": ("get", Role.VIEWER),
    "shadow": ("get", Role.VIEWER),
    "shadow-cancel": ("post", Role.MAINTAINER),
    "shadow-adopt": ("post", Role.MAINTAINER),
    "check-adopt": ("post", Role.MAINTAINER),
    "check-pause": ("post", Role.MAINTAINER),
    "regression": ("get", Role.VIEWER),
    "case-rename": ("post", Role.REVIEWER),
    "case-retire": ("post", Role.MAINTAINER),
    "case-restore": ("post", Role.MAINTAINER),
    "signal-keep-quiet": ("post", Role.REVIEWER),
    "contracts": ("get", Role.VIEWER),
    "contract": ("get", Role.VIEWER),
    "contract-new": ("get", Role.MAINTAINER),
    "contract-edit": ("get", Role.MAINTAINER),
    "contract-state": ("post", Role.MAINTAINER),
    "queue": ("get", Role.VIEWER),
    "queue-next": ("post", Role.REVIEWER),
    "queue-undo": ("post", Role.REVIEWER),
    "signal": ("get", Role.VIEWER),
    "signal-claim": ("post", Role.REVIEWER),
    "signal-release": ("post", Role.REVIEWER),
    "signal-heartbeat": ("post", Role.REVIEWER),
    "signal-draft": ("post", Role.REVIEWER),
    "signal-decide": ("post", Role.REVIEWER),
    "signal-undo": ("post", Role.REVIEWER),
    "blind": ("get", Role.VIEWER),
    "blind-claim": ("post", Role.REVIEWER),
    "blind-release": ("post", Role.REVIEWER),
    "blind-heartbeat": ("post", Role.REVIEWER),
    "blind-draft": ("post", Role.REVIEWER),
    "blind-decide": ("post", Role.REVIEWER),
    "blind-undo": ("post", Role.REVIEWER),
    "blind-reveal": ("post", Role.REVIEWER),
    "blind-percent": ("post", Role.MAINTAINER),
    "blind-withdraw": ("post", Role.MAINTAINER),
    "calibrations": ("get", Role.VIEWER),
    "calibration": ("get", Role.VIEWER),
    "reports": ("get", Role.VIEWER),
    "report": ("get", Role.VIEWER),
    "report-markdown": ("get", Role.VIEWER),
    "report-pdf": ("get", Role.VIEWER),
    "report-json": ("get", Role.VIEWER),
    "project-settings": ("get", Role.VIEWER),
    "member-add": ("post", Role.OWNER),
    "member-change": ("post", Role.OWNER),
    "member-link": ("post", Role.OWNER),
    "privacy-change": ("post", Role.MAINTAINER),
    "token-create": ("post", Role.MAINTAINER),
    "token-revoke": ("post", Role.MAINTAINER),
}
# Uploads by pieces, each of one person: test_resumable.py and test_unfinished.py.
BY_PIECES = {"upload-parts", "upload-part", "upload-part-remove"}
ALSO_POST = {
    "set-new": Role.REVIEWER,
    "set-delete": Role.REVIEWER,
    "uploads": Role.MAINTAINER,
    "reports": Role.REVIEWER,
    "contract-new": Role.MAINTAINER,
    "contract-edit": Role.MAINTAINER,
    "agent-decision": Role.MAINTAINER,
    "agent-contract-new": Role.MAINTAINER,
    "agent-contract": Role.MAINTAINER,
    "agent-file": Role.MAINTAINER,
    "agent-outcomes": Role.MAINTAINER,
    "agent-outcomes-decision": Role.MAINTAINER,
    "shadows": Role.MAINTAINER,
    **REPLAY_ALSO_POST,
}


@pytest.fixture(scope="module")
def house(stand):
    """Every room once for all tests of a module, and the folder of its raw upload."""
    return stand(make_rooms)


@pytest.fixture
def rooms(house, db):
    return dict(house[0])


@pytest.fixture
def project(rooms):
    return Project.objects.get(slug=rooms["slug"])


@pytest.fixture
def owner(rooms):
    return User.objects.get(username="olga")


@pytest.fixture(autouse=True)
def uploads_dir(house, settings):
    settings.UPLOADS_DIR = house[1]
    return settings.UPLOADS_DIR


def test_every_url_is_named_in_a_table_of_this_test():
    known = (
        PUBLIC | FOR_EVERYONE_SIGNED_IN | set(LEAST_ROLE) | API | BY_PIECES | API_OTHERS
    )
    known |= OF_ANOTHER_PROTOCOL
    assert set(names()) == known


@pytest.fixture
def stranger(db) -> Client:
    """Somebody who owns another project, with the slug of that project."""
    elsewhere = make_project(name="Elsewhere")
    client = signed_in_as(elsewhere.members.get())
    client.slug = elsewhere.slug
    return client


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_stranger_is_sent_to_the_sign_in_page(rooms, method):
    for name in sorted(set(LEAST_ROLE) | FOR_EVERYONE_SIGNED_IN):
        with put_back(name):
            answer = ask(Client(), name, rooms, method)
            assert answer.status_code == 302
            assert answer["Location"].startswith("/sign-in/?next=")


def test_a_member_of_another_project_finds_nothing_here(rooms, stranger):
    for name in sorted(LEAST_ROLE):
        with put_back(name):
            method, _ = LEAST_ROLE[name]
            assert status(stranger, name, rooms, method) == 404


def test_ids_of_another_project_are_not_found_through_ones_own(rooms, stranger):
    args = {**rooms, "slug": stranger.slug}
    for name in sorted(LEAST_ROLE):
        with put_back(name):
            if any(f"<int:{key}>" in url_route(name) for key in rooms):
                method, _ = LEAST_ROLE[name]
                assert status(stranger, name, args, method) == 404


def url_route(name: str) -> str:
    return "".join(
        f"<int:{key}>"
        for key in get_resolver().reverse_dict.getlist(name)[0][0][0][1]
        if key.endswith("_id")
    )


@pytest.mark.parametrize("role", list(Role))
def test_each_role_may_do_what_the_table_says_and_no_more(rooms, project, role):
    client = signed_in_as(make_member(project, role))
    order = list(Role)
    for name in sorted(LEAST_ROLE):
        with put_back(name):
            method, least = LEAST_ROLE[name]
            found = status(client, name, rooms, method)
            if order.index(role) >= order.index(least):
                assert found not in {403, 404, 405}
            else:
                assert found == 403
            assert found < 500
            if name in ALSO_POST:
                allowed = order.index(role) >= order.index(ALSO_POST[name])
                assert (status(client, name, rooms, "post") != 403) == allowed


def test_pages_answer_the_wrong_method_with_405(rooms, owner):
    client = signed_in_as(owner)
    for name in sorted(set(LEAST_ROLE) - set(ALSO_POST)):
        with put_back(name):
            method, _ = LEAST_ROLE[name]
            other = "post" if method == "get" else "get"
            assert status(client, name, rooms, other) == 405


def test_general_pages_answer_everyone_who_is_signed_in(rooms, reviewer):
    client = signed_in_as(reviewer)
    for name in sorted(FOR_EVERYONE_SIGNED_IN - {"sign-out"}):
        with put_back(name):
            assert status(client, name, rooms, "get") in {200, 302, 405}


def test_public_pages_answer_a_stranger(rooms):
    for name in sorted(PUBLIC):
        with put_back(name):
            assert status(Client(), name, rooms, "get") == 200


def test_a_refusal_says_which_role_is_needed(rooms, project):
    client = signed_in_as(make_member(project, Role.VIEWER))
    answer = ask(client, "queue-next", rooms, "post")
    assert "Only a reviewer or higher may decide signals" in answer.content.decode()


def test_the_overview_lets_nobody_press_what_they_may_not_do(rooms, project):
    for role, is_disabled in ((Role.VIEWER, True), (Role.REVIEWER, False)):
        page = ask(signed_in_as(make_member(project, role)), "overview", rooms)
        button = page.content.decode().split('data-key="g"')[1].split(">")[0]
        assert (" disabled" in button) is is_disabled
        assert ("Only a reviewer or higher" in button) is is_disabled


class TestTheJsonDoor:
    """API tokens: hashed, scoped, of one project."""

    @pytest.fixture
    def token(self, project, owner):
        def make(*scopes: Scope) -> str:
            _, secret = create_token(
                project=project,
                name=f"token {len(scopes)} {scopes}",
                scopes=scopes,
                user=owner,
                now=timezone.now(),
            )
            return secret

        return make

    def get(self, name, rooms, secret=None):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return Client().get(url_of(name, rooms), headers=headers)

    def test_without_a_token_it_is_401_in_words(self, rooms):
        for name in sorted(API | API_OTHERS):
            with put_back(name):
                answer = self.get(name, rooms)
                assert answer.status_code == 401
                assert "Bearer" in answer.json()["detail"]

    def test_a_session_is_no_token(self, rooms, owner):
        client = signed_in_as(owner)
        for name in sorted(API | API_OTHERS):
            with put_back(name):
                assert status(client, name, rooms, "get") == 401

    def test_a_token_that_may_read_reads(self, rooms, token):
        secret = token(Scope.READ)
        for name in sorted(API):
            with put_back(name):
                assert self.get(name, rooms, secret).status_code == 200

    def test_a_token_that_may_only_upload_reads_nothing(self, rooms, token):
        secret = token(Scope.UPLOAD)
        for name in sorted(API | API_OTHERS):
            with put_back(name):
                assert self.get(name, rooms, secret).status_code == 403

    def test_a_token_of_another_project_finds_nothing(self, rooms, token, stranger):
        secret = token(Scope.READ)
        for name in sorted(API_OF_PROJECT):
            with put_back(name):
                args = {**rooms, "slug": stranger.slug}
                assert self.get(name, args, secret).status_code == 404

    def test_a_token_sees_its_own_project_only(self, rooms, owner):
        elsewhere = make_project(owner=owner, name="Elsewhere")
        _, secret = create_token(
            project=elsewhere,
            name="ci",
            scopes=[Scope.READ],
            user=owner,
            now=timezone.now(),
        )
        for name in sorted(API_OF_TOKEN):
            with put_back(name):
                answer = self.get(name, rooms, secret)
                if answer.status_code != 404:
                    shown = answer.json()
                    assert not [v for v in shown.values() if isinstance(v, list) and v]
                    assert not shown.get("agents")

    def test_a_revoked_token_is_dead_at_once(self, rooms, token, project):
        secret = token(Scope.READ)
        project.apitoken_set.update(revoked_at=timezone.now())
        for name in sorted(API):
            with put_back(name):
                assert self.get(name, rooms, secret).status_code == 401

    def test_only_the_digest_of_a_token_is_stored(self, token, project):
        secret = token(Scope.READ)
        row = project.apitoken_set.latest("pk")
        assert secret not in {row.digest, row.prefix, row.name}
        assert len(row.digest) == 64
