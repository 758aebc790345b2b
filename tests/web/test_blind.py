"""The page of a blind look: nothing that a check said, until the reviewer has decided."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.operations import set_blind_percent
from apps.accounts.permissions import Role
from apps.engine.checks import CHECKS
from apps.review import blind
from apps.review import operations as review
from apps.review.blind import NOT_BLIND, BlindInput
from apps.review.models import BlindDraft, BlindLook, Signal
from apps.review.operations import DecisionInput
from apps.review.queries import QueueFilter
from apps.review.transitions import BlindVerdict, Verdict
from apps.screening.models import Screening
from tests.factories import (
    decay_trace,
    make_member,
    model_call,
    trace_of,
    upload_traces,
)

FALLING = (100, 90, 80, 70, 60)
QUIET = (50, 60, 55, 58, 61)


@pytest.fixture
def flagged(project):
    """A blind look at a trace that has a signal in the queue."""
    upload_traces(project, decay_trace(*FALLING, name="evening run"))
    signal = Signal.objects.get()
    return BlindLook.objects.create(
        project=project,
        trace=signal.trace,
        was_flagged=True,
        place=0.5,
        created_at=signal.created_at,
    )


def at(look, name="blind"):
    return reverse(name, args=[look.project.slug, look.pk])


class Main(HTMLParser):
    """The texts and addresses of a page outside of its side navigation and key sheet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.depth = 0
        self.parts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.depth += tag == "main"
        if self.depth:
            self.parts += [value or "" for _, value in attrs]

    def handle_endtag(self, tag):
        self.depth -= tag == "main"

    def handle_data(self, data):
        if self.depth:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.parts).casefold()


def told_by_checks(look) -> set[str]:
    """Everything a check said of the trace, and everything it is called."""
    said = {check.label for check in CHECKS} | {check.slug for check in CHECKS}
    for row in Screening.objects.filter(trace=look.trace):
        said |= {row.headline, row.reason_code, row.evidence.get("reason", "")}
    return {text.casefold() for text in said if text}


class TestBlindness:
    """The page says what happened in the run and nothing else."""

    def test_it_holds_nothing_that_a_check_said(self, web, flagged):
        text = Main(web.get(at(flagged)).content.decode()).text
        assert "answer 3" in text
        assert "did something go wrong in this run?" in text
        said = told_by_checks(flagged)
        assert len(said) > 2 * len(CHECKS)
        assert [one for one in said if one in text] == []
        for word in ("signal", "evidence", "chance", "flagged", "outcome: pass"):
            assert word not in text.replace("data-signal", ""), word

    def test_it_links_to_no_page_that_has_the_answers(self, web, flagged):
        page = web.get(at(flagged)).content.decode()
        trace = reverse("trace", args=[flagged.project.slug, flagged.trace_id])
        assert f'href="{trace}"' not in page
        signal = reverse("signal", args=[flagged.project.slug, Signal.objects.get().pk])
        assert signal not in page

    def test_a_flagged_and_an_unflagged_run_look_alike(self, web, project):
        steps = [model_call(seq, length) for seq, length in enumerate(FALLING)]
        upload_traces(project, trace_of(steps, name="run"))
        before = BlindLook.objects.create(
            project=project,
            trace=Signal.objects.get().trace,
            was_flagged=True,
            place=0.5,
            created_at=Signal.objects.get().created_at,
        )
        flagged = web.get(at(before)).content.decode()
        BlindLook.objects.update(was_flagged=False)
        assert len(web.get(at(before)).content.decode()) == len(flagged)
        assert "was_flagged" not in flagged

    def test_after_the_decision_they_are_shown_when_asked_for(self, web, flagged):
        web.post(at(flagged, "blind-decide"), {"verdict": "failure", "version": "0"})
        page = web.get(at(flagged)).content.decode()
        headline = Screening.objects.get(
            trace=flagged.trace, check_slug="output-decay"
        ).headline
        assert headline not in page
        assert "Show what the checks said" in page
        assert web.post(at(flagged, "blind-reveal")).status_code == 302
        page = web.get(at(flagged)).content.decode()
        assert headline in page
        trace = reverse("trace", args=[flagged.project.slug, flagged.trace_id])
        assert f'href="{trace}"' in page
        undone = web.post(at(flagged, "blind-undo"), {"version": "3"})
        assert undone.status_code == 409
        assert "have seen what the checks said" in undone.content.decode()

    def test_who_decided_a_signal_of_the_trace_may_not_decide(
        self, web, owner, flagged
    ):
        review.decide(
            signal_id=Signal.objects.get().pk,
            user=owner,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=0,
        )
        assert NOT_BLIND in web.get(at(flagged)).content.decode()
        answer = web.post(
            at(flagged, "blind-decide"), {"verdict": "failure", "version": "0"}
        )
        assert answer.status_code == 422
        assert NOT_BLIND in answer.content.decode()

    def test_a_decision_that_was_taken_back_is_not_told_to_the_next(
        self, web, project, flagged, owner
    ):
        decided = blind.decide(
            look_id=flagged.pk,
            user=make_member(project, Role.REVIEWER, "sven"),
            decision=BlindInput(verdict=BlindVerdict.FAILURE, note="A loop."),
            base_version=0,
        )
        blind.undo(
            look_id=flagged.pk,
            user=decided.decided_by,
            base_version=decided.version,
        )
        assert "A loop." not in web.get(at(flagged)).content.decode()


class TestActs:
    """Deciding without scripts, with drafts, conflicts and undo."""

    def test_it_is_decided_with_where_and_which_kind(self, web, owner, flagged):
        answer = web.post(
            at(flagged, "blind-decide"),
            {
                "verdict": "failure",
                "note": "It forgets the order.",
                "failure_kind": "reasoning",
                "where_agent": "planner",
                "where_step": "3",
                "version": "0",
            },
        )
        assert answer["Location"] == at(flagged)
        entry = blind.history_of(flagged).last()
        assert (entry.where_step, entry.where_agent) == (2, "planner")
        assert (entry.failure_kind, entry.note) == (
            "reasoning",
            "It forgets the order.",
        )
        assert "It forgets the order." in web.get(at(flagged)).content.decode()

    def test_what_was_typed_is_kept_when_somebody_else_was_faster(
        self, web, project, flagged, owner
    ):
        other = make_member(project, Role.REVIEWER, "sven")
        blind.decide(
            look_id=flagged.pk,
            user=other,
            decision=BlindInput(verdict=BlindVerdict.NO_FAILURE),
            base_version=0,
        )
        answer = web.post(
            at(flagged, "blind-decide"),
            {"verdict": "failure", "note": "My note", "version": "0"},
        )
        assert answer.status_code == 409
        assert "sven has decided meanwhile" in answer.content.decode()
        assert BlindDraft.objects.get(user=owner).fields["note"] == "My note"

    def test_without_an_answer_it_says_what_is_missing(self, web, flagged):
        answer = web.post(at(flagged, "blind-decide"), {"version": "0", "note": "x"})
        assert answer.status_code == 422
        assert "choose an answer first." in answer.content.decode()
        assert ">x</textarea>" in answer.content.decode()

    def test_the_script_claims_keeps_and_lets_go(self, web, flagged):
        json = {"Accept": "application/json"}
        lease = web.post(at(flagged, "blind-claim"), headers=json).json()
        assert lease["version"] == 1
        beat = web.post(at(flagged, "blind-heartbeat"), headers=json)
        assert beat.status_code == 200
        saved = web.post(at(flagged, "blind-draft"), {"note": "half"}, headers=json)
        assert "saved_at" in saved.json()
        gone = web.post(at(flagged, "blind-release"), {"beacon": "1"})
        assert gone.status_code == 204
        assert web.post(at(flagged, "blind-heartbeat"), headers=json).status_code == 409

    def test_undo_from_the_page_gives_it_back(self, web, flagged):
        web.post(at(flagged, "blind-decide"), {"verdict": "failure", "version": "0"})
        flagged.refresh_from_db()
        web.post(at(flagged, "blind-undo"), {"version": str(flagged.version)})
        flagged.refresh_from_db()
        assert flagged.state == "claimed"

    def test_a_long_run_is_read_in_parts_at_a_constant_number_of_queries(
        self, web, project
    ):
        def queries(look) -> int:
            address = at(look)
            with CaptureQueriesContext(connection) as caught:
                assert web.get(address).status_code == 200
            return len(caught)

        set_blind_percent(project=project, percent=100)
        upload_traces(project, decay_trace(*range(1, 110), name="short"))
        upload_traces(
            project,
            decay_trace(*range(1, 1_000), name="long"),
            name="long.jsonl",
        )
        short, long = BlindLook.objects.order_by("trace__step_count")
        queries(short)
        assert queries(long) == queries(short)
        assert "?from=101" in web.get(at(long)).content.decode()
        assert "answer 150" in web.get(at(long) + "?from=101").content.decode()


class TestTheQueue:
    """Blind looks stand between signals, wherever one looks for work."""

    @pytest.fixture
    def full(self, project):
        set_blind_percent(project=project, percent=100)
        upload_traces(
            project,
            *[decay_trace(*QUIET, name=f"quiet {number}") for number in range(20)],
        )
        set_blind_percent(project=project, percent=0)
        upload_traces(
            project,
            *[decay_trace(*FALLING, name=f"falls {number}") for number in range(60)],
            name="falling.jsonl",
        )
        return project

    def rows(self, answer) -> str:
        """`s` for each signal of a page and `b` for each blind look, in their order."""
        return "".join("b" if row.look else "s" for row in answer.context["mixed"].rows)

    def test_each_four_signals_are_followed_by_a_look(self, web, full):
        url = reverse("queue", args=[full.slug])
        first = web.get(url)
        assert self.rows(first) == "ssssb" * 12 + "ss"
        assert "20 blind looks mixed in" in first.content.decode()
        assert first.context["mixed"].next_query.endswith("&looks=12")
        second = web.get(url + first.context["mixed"].next_query)
        assert self.rows(second) == "ssssb" * 2 + "ss" + "b" * 6
        both = [
            row.look.pk
            for answer in (first, second)
            for row in answer.context["mixed"].rows
            if row.look
        ]
        assert len(both) == len(set(both)) == 20

    def test_a_row_says_nothing_of_the_trace_or_the_checks(self, web, full):
        page = web.get(reverse("queue", args=[full.slug])).content.decode()
        row = page.partition("/blind/")[2].partition("</li>")[0]
        assert "Blind look: did something go wrong in this run?" in row
        assert "quiet" not in row
        assert not any(check.label in row for check in CHECKS)

    def test_a_narrowed_view_holds_none(self, web, full):
        url = reverse("queue", args=[full.slug]) + "?check=output-decay"
        answer = web.get(url)
        assert "b" not in self.rows(answer)
        assert "blind look" not in answer.content.decode()

    def test_what_one_holds_and_has_decided_is_found_again(self, web, full, owner):
        look = blind.claim_next(project=full, user=owner)
        url = reverse("queue", args=[full.slug])
        assert self.rows(web.get(url + "?view=mine")) == "b"
        web.post(at(look, "blind-decide"), {"verdict": "no_failure", "version": "1"})
        assert self.rows(web.get(url + "?view=mine")) == ""
        assert self.rows(web.get(url + "?view=decided")) == "b"

    def test_the_next_one_is_a_look_after_four_signals(self, web, full):
        where = []
        for _ in range(10):
            address = web.post(reverse("queue-next", args=[full.slug]))["Location"]
            where.append("b" if "/blind/" in address else "s")
        assert "".join(where) == "ssssbssssb"

    def test_undo_takes_back_what_was_decided_last(self, web, full, owner):
        signal = review.claim_next(project=full, user=owner, where=QueueFilter())
        review.decide(
            signal_id=signal.pk,
            user=owner,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=signal.version,
        )
        look = blind.claim_next(project=full, user=owner)
        web.post(at(look, "blind-decide"), {"verdict": "failure", "version": "1"})
        undo = reverse("queue-undo", args=[full.slug])
        assert web.post(undo)["Location"] == at(look)
        assert "/signals/" in web.post(undo)["Location"]

    def test_with_looks_alone_there_is_still_something_to_review(self, web, project):
        set_blind_percent(project=project, percent=100)
        upload_traces(project, decay_trace(*QUIET, name="quiet"))
        page = web.get(reverse("queue", args=[project.slug])).content.decode()
        assert "Review next" in page
        assert "Nothing in this view" not in page


class TestTheShare:
    """A maintainer chooses how many traces are drawn."""

    def test_it_is_changed_on_the_settings_page(self, web, project):
        settings = reverse("project-settings", args=[project.slug])
        assert "No trace is drawn" in web.get(settings).content.decode()
        url = reverse("blind-percent", args=[project.slug])
        assert web.post(url, {"percent": "15"}).status_code == 302
        project.refresh_from_db()
        assert project.blind_percent == 15
        assert "15 % of the traces" in web.get(settings).content.decode()

    @pytest.mark.parametrize("value", ["101", "-1", "x", "", "1_0"])
    def test_what_is_no_percentage_is_refused_in_words(self, web, project, value):
        url = reverse("blind-percent", args=[project.slug])
        assert web.post(url, {"percent": value}).status_code == 422

    def test_undecided_looks_are_taken_back(self, web, flagged):
        settings = reverse("project-settings", args=[flagged.project.slug])
        assert "Take back 1 undecided look" in web.get(settings).content.decode()
        web.post(reverse("blind-withdraw", args=[flagged.project.slug]))
        flagged.refresh_from_db()
        assert flagged.state == "superseded"
        assert "taken back before anybody" in web.get(at(flagged)).content.decode()

    def test_a_reviewer_reads_why_it_is_not_theirs_to_change(self, project, reviewer):
        client = Client()
        client.force_login(reviewer)
        settings = reverse("project-settings", args=[project.slug])
        assert "may change which checks count" in client.get(settings).content.decode()
