"""OTLP JSON under older names, and as a trace store answers it."""

from __future__ import annotations

import pytest

from tests.formats.otlp_files import agent, call, document
from tests.formats.reading import as_json, refusal_of, slug_of, traces_of

SPANS = [agent(1, None, "billing", lasts=9), call(2, 1, 30), call(3, 1, 20)]
SCOPES = {"scopeSpans": [{"spans": SPANS}]}
LIBRARIES = {"instrumentationLibrarySpans": [
    {"instrumentationLibrary": {"name": "x"}, "spans": SPANS}]}  # fmt: skip
SHAPES = {
    "tempo": {"batches": [SCOPES]},
    "tempo wrapped": {"trace": {"resourceSpans": [SCOPES]}, "metrics": {}},
    "tempo with resource": {"batches": [{"resource": {"attributes": []}, **SCOPES}]},
    "libraries": {"resourceSpans": [LIBRARIES]},
    "libraries in batches": {"batches": [LIBRARIES]},
    "libraries in snake case": {"resource_spans": [
        {"instrumentation_library_spans": [{"spans": SPANS}]}]},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_it_reads_the_same_spans_under_older_names(shape):
    data = as_json(SHAPES[shape])
    assert slug_of(data) == "otlp-json"
    assert traces_of(data) == traces_of(as_json(document(*SPANS)))


@pytest.mark.parametrize("batches", [[], [1], [{}], {}, "x", [{"id": 1}]])
def test_batches_of_something_else_are_no_spans(batches):
    data = as_json({"batches": batches})
    assert slug_of(data) is None
    assert "resourceSpans" in refusal_of(data, "otlp-json")
