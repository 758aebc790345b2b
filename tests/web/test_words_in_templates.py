"""Filters of templates that keep together what belongs together."""

from __future__ import annotations

import pytest

from apps.engine.replay.run import TargetKind
from apps.web.replay_target_forms import EXPLAINED
from apps.web.templatetags.evidence import coded, tied


def test_a_percent_sign_stays_with_its_number():
    said = "in 20 of 20 (100 %; 95 % interval 83.9 % to 100 %)."
    assert " %" not in tied(said)
    assert tied(said).replace("\u202f", " ") == said


@pytest.mark.parametrize("text", ["a %s of it", "%", "", "5 of 6", "<b>"])
def test_a_text_without_a_percentage_stays_as_it_is(text):
    assert tied(text) == text


def test_what_a_command_is_told_in_json_is_set_as_code():
    html = coded(EXPLAINED[TargetKind.COMMAND])
    assert "<code>{&quot;output&quot;: …, &quot;state&quot;: …}</code>" in html
    assert html.count("<code>") == 2


def test_a_text_with_json_in_it_is_escaped_around_it_and_within():
    assert coded('<b> {"a": "<i>"} </b>') == (
        "&lt;b&gt; <code>{&quot;a&quot;: &quot;&lt;i&gt;&quot;}</code> &lt;/b&gt;"
    )


def test_braces_that_are_not_closed_are_words():
    assert coded("a { b") == "a { b"
