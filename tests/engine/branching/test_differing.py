"""Two texts side by side: joined, the pieces are the texts."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.branching import side_by_side
from apps.engine.branching.differing import MOST_CHARACTERS, Piece

texts = st.text(alphabet="ab \n.é漢", max_size=40)


def joined(pieces, *kinds):
    return "".join(piece.text for piece in pieces if not kinds or piece.kind in kinds)


def test_changed_words_stand_between_equal_ones():
    found = side_by_side("Refund 100 dollars.\nBye\n", "Refund 20 dollars.\nBye\n")
    assert found.first == (
        Piece("equal", "Refund "),
        Piece("removed", "100"),
        Piece("equal", " dollars.\nBye\n"),
    )
    assert found.second[1] == Piece("added", "20")
    assert not found.is_equal


def test_white_space_between_two_changes_counts_as_changed():
    found = side_by_side("I will refund it", "I must deny it")
    assert found.first[1] == Piece("removed", "will refund")
    assert found.second[1] == Piece("added", "must deny")


def test_values_in_json_are_told_apart_without_white_space():
    found = side_by_side('{"id":"A1","n":2}', '{"id":"A2","n":2}')
    assert joined(found.first, "removed") == "A1"
    assert joined(found.second, "added") == "A2"


def test_equal_texts_have_no_difference_and_empty_ones_no_piece():
    assert side_by_side("same", "same").is_equal
    assert side_by_side("", "").first == ()
    only = side_by_side("", "new")
    assert (only.first, only.second) == ((), (Piece("added", "new"),))


@given(texts, texts)
@settings(max_examples=300, deadline=None)
def test_the_pieces_joined_are_the_texts_and_share_what_is_equal(one, other):
    found = side_by_side(one, other)
    assert joined(found.first) == one
    assert joined(found.second) == other
    assert joined(found.first, "equal") == joined(found.second, "equal")
    assert found.is_equal == (one == other)
    turned = side_by_side(other, one)
    assert joined(turned.first) == other


def test_long_texts_are_cut_and_say_so():
    found = side_by_side("a" * (MOST_CHARACTERS + 7), "b")
    assert found.cut == (7, 0)
    assert "7 of the first and 0 of the second" in found.cut_words
    assert len(joined(found.first)) == MOST_CHARACTERS
    assert side_by_side("a", "b").cut_words == ""


def test_stretches_too_long_for_words_stand_as_a_whole_and_take_no_time():
    one, other = "a " * 30_000, "b " * 30_000
    begin = time.process_time()
    for pair in ((one, other), (one.replace(" ", "\n"), other.replace(" ", "\n"))):
        found = side_by_side(*pair)
        assert found.is_whole
        assert joined(found.first) == pair[0]
        assert [piece.kind for piece in found.second] == ["added"]
    assert time.process_time() - begin < 5
