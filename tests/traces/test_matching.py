"""Which stored trace a newly read one is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.traces.matching import Found, Known, match

IDS = st.none() | st.sampled_from("abc")


def made(native_id: str | None, content: str) -> Found:
    """A native id is a part of the content, as in `content_hash`."""
    return Found(native_id, f"{native_id} {content}")


FOUND = st.lists(st.builds(made, IDS, st.sampled_from("xyz")), max_size=8)


def stored(found: list[Found]) -> list[Known]:
    """A reading as it is stored: each native id once."""
    seen: set[str] = set()
    known = []
    for place, one in enumerate(found):
        if one.native_id in seen:
            continue
        if one.native_id:
            seen.add(one.native_id)
        known.append(Known(100 + place, one.native_id, one.content_hash, place))
    return known


def pairs(known, found, elsewhere=()):
    matches = match(known, found, elsewhere=elsewhere)
    return {place: one.known.trace_id for place, one in matches.items()}


@given(FOUND)
def test_the_same_reading_again_matches_every_stored_trace_where_it_stands(found):
    known = stored(found)
    assert pairs(known, found) == {one.place: one.trace_id for one in known}


@given(FOUND, FOUND)
def test_no_stored_trace_is_matched_twice_and_no_native_id_goes_to_another(old, new):
    matches = match(stored(old), new, elsewhere=())
    taken = [one.known.trace_id for one in matches.values()]
    assert len(taken) == len(set(taken))
    after = [new[place].native_id for place in matches if new[place].native_id]
    assert len(after) == len(set(after))
    for place, one in matches.items():
        before = {earlier.native_id for earlier in new[:place]} - {None}
        assert new[place].native_id not in before
        ids = {one.known.native_id, new[place].native_id} - {None}
        assert len(ids) < 2


@given(FOUND, FOUND)
def test_the_plan_is_the_same_after_half_of_it_was_carried_out(old, new):
    known = stored(old)
    first = match(known, new, elsewhere=())
    half = {place for place in first if place % 2}
    carried = [
        Known(
            one.known.trace_id,
            new[place].native_id if place in half else one.known.native_id,
            new[place].content_hash if place in half else one.known.content_hash,
            place,
        )
        for place, one in first.items()
    ]
    matched = {one.known.trace_id for one in first.values()}
    carried += [
        Known(one.trace_id, one.native_id, one.content_hash, -1 - number)
        for number, one in enumerate(o for o in known if o.trace_id not in matched)
    ]
    assert pairs(carried, new) == {p: one.known.trace_id for p, one in first.items()}


def test_a_trace_that_was_missing_is_found_again_by_its_content_only():
    gone = Known(7, None, "x", -1)
    assert pairs([gone], [Found(None, "y")]) == {}
    assert pairs([gone], [Found(None, "y"), Found(None, "x")]) == {1: 7}


def test_a_native_id_that_comes_with_a_newer_reader_goes_to_the_same_place():
    assert pairs([Known(7, None, "x", 0)], [Found("a", "y")]) == {0: 7}
    assert pairs([Known(7, None, "x", 0)], [Found("a", "y")], elsewhere={"a"}) == {}
