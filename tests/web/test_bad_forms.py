"""Any value in any field of any form: taken, or refused in words, and never a 500."""

from __future__ import annotations

import re
from itertools import product
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.review.models import BlindLook, Signal
from apps.screening.models import RegressionCase
from apps.traces.models import Upload
from tests.adopting import make_regression_case
from tests.replays.making import stopped_batch
from tests.web.agent_fields import AGENT_FORMS, places_of_agents
from tests.web.hostile import HTML
from tests.web.page_reads import Reads, ask_and_note, changes, concerned, state_for
from tests.web.test_bad_requests import SURROGATE, look_at_the_trace, make_place
from tests.web.visiting import addresses, assert_inert, freeze, pages


def make_everything_a_form_is_about() -> Reads:
    """The place with a look, a kept trace, an agent and a batch, and what its pages read."""
    make_place()
    place = Project.objects.get()
    make_regression_case(place)
    look_at_the_trace(place)
    places_of_agents(place)
    stopped_batch(place)
    client = Client()
    client.force_login(User.objects.get())
    return ask_and_note(client, addresses(place))


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_everything_a_form_is_about)


@pytest.fixture
def reads(made) -> Reads:
    return made[0]


@pytest.fixture
def place(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture(autouse=True)
def uploads_dir(made, settings):
    settings.UPLOADS_DIR = made[1]
    return settings.UPLOADS_DIR


VALUES = ["", "a\x00b", "9" * 30, "-1", "²", "x" * 50_000, HTML, "\u202e", "1e999",
          "[]", "null", SURROGATE.decode("latin-1")]  # fmt: skip
FORMS = {
    "signal-decide": {
        "verdict": "dismiss",
        "reason": "other",
        "note": "because",
        "failure_kind": "tool",
        "where_agent": "planner",
        "where_step": "1",
        "version": "0",
        "submission": str(uuid4()),
        "view": "open",
        "agent": "",
        "upload": "",
    },
    "blind-decide": {
        "verdict": "failure",
        "note": "because",
        "failure_kind": "tool",
        "where_agent": "planner",
        "where_step": "1",
        "version": "0",
        "submission": str(uuid4()),
    },
    "blind-draft": {"verdict": "failure", "note": "n", "where_step": "1"},
    "blind-undo": {"version": "0"},
    "blind-release": {"beacon": ""},
    "blind-percent": {"percent": "10"},
    "signal-draft": {"verdict": "confirm", "note": "n", "where_step": "1"},
    "signal-undo": {"version": "0"},
    "signal-claim": {"view": "open", "upload": "1", "agent": "a"},
    "signal-release": {"beacon": "", "view": "open", "agent": "a"},
    "queue-next": {"view": "open", "agent": "a", "upload": "1", "check": "x"},
    "queue-undo": {"view": "open", "agent": "a"},
    "member-add": {"username": "new", "role": "viewer"},
    "member-change": {"role": "viewer"},
    "privacy-change": {"redact_secrets": "on", "raw_bytes": "not_kept"},
    "token-create": {"name": "ci", "scopes": "read"},
    "reports": {"title": "Weekly", "view": "all", "agent": "", "upload": ""},
    "contract-new": {
        "label": "Small refunds",
        "operator": "always",
        "scope": "trace",
        "level": "review_signal",
        "sentence": "As agreed.",
        "n": "",
        "select_kind": "tool_call",
        "select_name": "refund",
        "then_asks": "arguments",
        "then_condition": '{"maximum": 3}',
        "then_status": "ok",
        "on": "",
        "act": "preview",
    },
    "contract-edit": {
        "label": "No refund",
        "operator": "never",
        "select_name": "refund",
        "select_asks": "cel",
        "select_condition": "step.seq > 1",
        "number": "1",
        "act": "save",
    },
    "contract-state": {"state": "paused"},
    **AGENT_FORMS,
    "shadows": {
        "version": "1",
        "min_calls": "6",
        "last_percent": "40",
        "max_chance": "0.05",
    },
    "check-adopt": {"number": "1", "seen": "1", "note": "because"},
    "check-pause": {"act": "pause"},
    "case-rename": {"name": "A quiet run"},
    "signal-keep-quiet": {"name": "A quiet run"},
    "projects": {"name": "P", "description": "d"},
    "upload-read-again": {"format": ""},
    "set-new": {"name": "Release 5", "note": "why", "ids": "", "act": "save"},
    "set-rename": {"name": "Release 5", "note": "why"},
    "set-baseline": {"act": "choose"},
    "uploads": {"format": ""},
    "replay-batch-resume": {"calls": "9", "tokens": "", "money": "1", "seconds": ""},
}


OF_A_CHECK = ("shadows", "check-adopt", "check-pause")
OF_A_LOOK = ("blind-decide", "blind-draft", "blind-undo", "blind-release")


@pytest.mark.parametrize("form", FORMS)
def test_any_value_of_a_form_is_taken_or_refused_in_words(
    web, place, owner, reads, form
):
    args = {
        "contract-edit": ["no-refund"],
        "contract-state": ["no-refund"],
        **{name: ["output-decay"] for name in OF_A_CHECK},
        "case-rename": [RegressionCase.objects.get().pk],
        "member-change": [owner.pk],
        "upload-read-again": [Upload.objects.get().pk],
        "set-rename": ["release-4"],
        "set-baseline": ["release-4"],
        **{name: [BlindLook.objects.get().pk] for name in OF_A_LOOK},
        **places_of_agents(place),
        "replay-batch-resume": [stopped_batch(place).pk],
    }.get(form, [Signal.objects.get().pk] if form.startswith("signal") else [])
    url = reverse(form, args=[] if form == "projects" else [place.slug, *args])
    before = state_for(owner, place)
    for field, value in product(FORMS[form], VALUES):
        answer = web.post(url, {**FORMS[form], field: value})
        assert answer.status_code < 500, (field, value[:20], answer.status_code)
        said = answer.content.decode()
        if answer.status_code >= 400:
            assert re.search(r"[a-z]{3}[.!?]", said)
        # One value alone could take effect, when it is sent or wherever it is shown.
        if answer["Content-Type"].startswith("text/html") and (
            value == HTML or "alert" in said
        ):
            assert_inert(said.replace("\x00", ""))
    # The first page says what was said about the last form.
    changed = changes(before, state_for(owner, place))
    for address in concerned(addresses(place), reads, changed):
        assert web.get(address).status_code == 200, address


def test_what_a_reviewer_types_is_text_wherever_it_is_shown(web, place):
    signal = Signal.objects.get()
    url = reverse("signal-decide", args=[place.slug, signal.pk])
    fields = {"verdict": "confirm", "version": "0", "note": HTML, "where_agent": HTML}
    assert web.post(url, fields).status_code == 302
    freeze(web, place, title=HTML[:150])
    for address, content in pages(web, place).items():
        if not address.endswith((".pdf", ".json", ".md", "/download/", "as=text")):
            assert_inert(content.decode())
