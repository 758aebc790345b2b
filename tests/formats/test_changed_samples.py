"""Any sample of any format with one value changed, or cut off anywhere.

Only items come out or one sentence, and never a step that the whole file does not have.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.all_samples import FILES
from tests.formats.changed_files import (
    ANYTHING,
    QUICK,
    check_cut,
    places,
    read_safely,
    replaced,
    values_of,
)

CHANGEABLE = {
    slug: [
        (*found, list(places(found[0]))) for found in map(values_of, samples) if found
    ]
    for slug, samples in FILES.items()
}


@pytest.mark.parametrize("slug", [slug for slug in FILES if CHANGEABLE[slug]])
@QUICK
@given(data=st.data(), new=ANYTHING)
def test_any_value_of_a_file_may_be_anything(slug, data, new):
    value, write, paths = data.draw(st.sampled_from(CHANGEABLE[slug]))
    path = data.draw(st.sampled_from(paths))
    read_safely(write(replaced(value, path, new)), slug)


@pytest.mark.parametrize("slug", FILES)
@QUICK
@given(data=st.data())
def test_a_file_that_is_cut_off_tells_nothing_that_is_not_in_it(slug, data):
    whole = data.draw(st.sampled_from(FILES[slug]))
    check_cut(whole, data.draw(st.integers(0, len(whole) - 1)), slug)
