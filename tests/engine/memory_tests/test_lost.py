"""Where a fact went, by every way in which states, summaries and inputs can be known."""

from __future__ import annotations

import pytest

from apps.engine.memory_tests.lost import Of, Seen, held_before, lost_in

KINDS = {"p": Of.STATE, "s": Of.SUMMARY, "h": Of.HANDED}
NAMES = {"+": True, "-": False, "?": None}


def seen(words):
    """`p+0` is a state after turn 0 that names the value, `s-3` a summary without."""
    return tuple(
        Seen(what=KINDS[word[0]], turn=int(word[2:]), names=NAMES[word[1]])
        for word in words.split()
    )


@pytest.mark.parametrize(
    ("words", "place", "why"),
    [
        ("p+0 p+8 h+9", "ignored", "turn 10 names it; the answer"),
        ("p-0 p-8 h+9", "ignored", "names it"),
        ("p+0 p+8 h-9", "not_retrieved", "state after turn 9 names it; what the"),
        ("p+0 p+8 h?9", "cannot_tell", "either not retrieved or ignored"),
        ("p-0 p-8 h-9", "never_stored", "The state after turn 1 does not name it"),
        ("p-0 p-8 h?9", "never_stored", "so it may have stood there"),
        ("p-0 p+8 h-9", "not_retrieved", "state after turn 9 names it"),
        ("p?0 p-8 h-9", "never_stored", "The state after turn 9 does not name it"),
        ("p+0 p-8 h-9", "dropped_by_summariser", "shortens the state in between"),
        ("p+0 p?8 h-9", "cannot_tell", "last state before the turn that asks was not"),
        ("p?0 p?8 h-9", "cannot_tell", "No state and no summary was given out; what"),
        ("p?0 p?8 h?9", "cannot_tell", "given out, nor what the model was given"),
        ("p+0 p+8", "cannot_tell", "was either not retrieved or ignored"),
        (
            "p+0 p+3 s-3 p-3 p-8 h-9",
            "dropped_by_summariser",
            "The state after turn 4 names it, the summary after turn 4 does not.",
        ),
        ("p+0 p+3 s-3 p+3 p+8 h-9", "not_retrieved", "state after turn 9"),
        (
            "p+0 p+3 s-3 p+3 p+7 s-7 p-7 h-9",
            "dropped_by_summariser",
            "The state after turn 8 names it, the summary after turn 8 does not.",
        ),
        ("p+0 p+3 s+3 p+3 p-8 h-9", "dropped_by_summariser", "state after turn 9"),
        (
            "p?0 p?3 s-3 p?3 p?8 h-9",
            "dropped_by_summariser",
            "It was said before the summary, and the summary after turn 4 does not",
        ),
        (
            "s+3 s-7 h-9",
            "dropped_by_summariser",
            "The summary after turn 4 names it, the summary after turn 8 does not.",
        ),
        ("p?0 s+3 p?3 h-9", "not_retrieved", "The summary after turn 4 names it"),
        ("p-0 s+3 p-3 h-9", "not_retrieved", "The summary after turn 4 names it"),
        ("p?0 s+3 s?7 h-9", "cannot_tell", "was not given out"),
        ("", "cannot_tell", "No state and no summary"),
    ],
)
def test_the_last_place_that_it_did_not_pass_is_named(words, place, why):
    lost = lost_in(seen(words))
    assert (lost.place.value, why in lost.why) == (place, True), lost.why
    assert lost.why.endswith(".")
    assert lost.seen == seen(words)


def test_what_was_kept_before_asking_is_what_the_last_state_says():
    assert held_before(seen("p+0 p-8 h+9")) is False
    assert held_before(seen("p+0 p?8")) is None
    assert held_before(seen("s+3 h+9")) is None
