"""Every reader against the samples of all others: which file is whose."""

import io

import pytest

from apps.engine.formats import FORMATS, by_slug, open_source
from tests.each import for_each
from tests.formats.all_samples import FILES
from tests.formats.reading import slug_of, traces_of

CASES = [
    pytest.param(slug, data, id=f"{slug}-{number}")
    for slug, samples in FILES.items()
    for number, data in enumerate(samples)
]

# What two readers can read, and why the first of them is the one to do it.
SHARED = {
    ("mlflow", "phoenix-spans"): "spans of one trace; MLflow's name themselves",
    ("trail", "phoenix-spans"): "spans of one trace; TRAIL's hold their children",
    ("claude-code-stream", "claude-code"): "the same lines; a stream has session_id",
    ("iflow", "claude-code"): "the same lines; iFlow's sessions are named otherwise",
    ("autogen", "request-log"): "a logged call is a request with its response",
    ("anthropic-messages", "openai-chat"): "an answer alone is a message too",
    ("openai-responses", "openai-chat"): "items with roles are messages too",
    ("gptme", "openai-chat"): "messages; gptme's have times and marks",
    ("mistral-vibe", "openai-chat"): "messages; Mistral Vibe's have ids",
}


def test_every_reader_has_samples_here():
    assert set(FILES) == {one.slug for one in FORMATS}


@for_each(("slug", "data"), CASES)
def test_the_first_reader_that_recognises_a_sample_is_its_own(slug, data):
    assert slug_of(data) == slug


@for_each(("slug", "data"), CASES)
def test_no_other_reader_claims_a_sample_but_for_a_reason(slug, data):
    claims = {
        one.slug
        for one in FORMATS
        if one.recognises(open_source(io.BytesIO(data))) and one.slug != slug
    }
    assert {other for other in claims if (slug, other) not in SHARED} == set()
    order = [one.slug for one in FORMATS]
    assert all(order.index(slug) < order.index(other) for other in claims)


@for_each(("slug", "data"), CASES)
def test_choosing_the_format_oneself_reads_a_sample_alike(slug, data):
    assert by_slug(slug).slug == slug
    chosen = traces_of(data, slug)
    assert chosen
    assert chosen == traces_of(data)
