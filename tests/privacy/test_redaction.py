"""A trace without its secrets: the same trace but for the marks."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.formats import read_file
from apps.engine.privacy.redaction import Redactor, redact
from apps.engine.privacy.rules import RULES
from apps.engine.trace import Body, Step, StepKind, ToolCall, Trace

KEY = "sk-proj-4bQ9xT2mZ7kV1cN8wR5yH3jL6pD0sF"
MAIL = "jane.doe@acme.com"


def trace_with(body: Body | None, **more) -> Trace:
    step = Step(
        seq=0,
        kind=StepKind.TOOL_CALL,
        name="send@acme.com",
        native_id=KEY,
        call=ToolCall(name="mail jane.doe@acme.com", call_id="a@b.com"),
        body=body,
    )
    return Trace(name=MAIL, steps=(step,), task=MAIL, session=MAIL, **more)


def body_of(body: Body) -> Body:
    return redact(trace_with(body))[0].steps[0].body


class TestWhatIsTouched:
    def test_values_of_all_parts_of_a_body_lose_their_secrets(self):
        for part in ("input", "output", "reasoning"):
            body = body_of(Body(**{part: {"deep": [f"my key is {KEY}."]}}))
            assert getattr(body, part) == {
                "deep": ["my key is [redacted: OpenAI key]."]
            }
        body = body_of(Body(attributes={"http.user": MAIL}))
        assert body.attributes == {"http.user": "[redacted: e-mail]"}

    def test_error_messages_metadata_labels_and_notes_lose_them_too(self):
        trace = trace_with(
            None, metadata={"u": MAIL}, labels={"l": [MAIL]}, notes=(MAIL,)
        )
        step = msgspec.structs.replace(trace.steps[0], error_message=f"no {KEY}")
        new, counts = redact(msgspec.structs.replace(trace, steps=(step,)))
        assert new.metadata == {"u": "[redacted: e-mail]"}
        assert new.labels == {"l": ["[redacted: e-mail]"]}
        assert new.notes == ("[redacted: e-mail]",)
        assert new.steps[0].error_message == "no [redacted: OpenAI key]"
        assert counts == {"e-mail": 3, "openai-key": 1}

    def test_names_ids_tasks_and_times_are_never_touched(self):
        trace = trace_with(Body(input=MAIL))
        new, _ = redact(trace)
        hidden = msgspec.structs.replace(trace.steps[0], body=None)
        assert msgspec.structs.replace(new.steps[0], body=None) == hidden
        assert (new.name, new.task, new.session) == (MAIL, MAIL, MAIL)

    def test_a_trace_without_secrets_is_the_very_same_object(self):
        trace = trace_with(Body(input={"a": [1, "two", None]}, output="fine"))
        assert redact(trace) == (trace, {})
        assert redact(trace)[0] is trace


class TestJsonInsideTexts:
    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_it_stays_json_however_deep(self, depth):
        value = {
            "note": f"line\n{MAIL}\t{KEY}",
            "card": 4111111111111111,
            "api_key": "k",
        }
        text = value
        for _ in range(depth):
            text = json.dumps({"inner": text})
        back = body_of(Body(input=text)).input
        for _ in range(depth):
            back = json.loads(back)["inner"]
        assert back == {
            "note": "line\n[redacted: e-mail]\t[redacted: OpenAI key]",
            "card": "[redacted: payment card]",
            "api_key": "k",
        }

    @given(
        st.recursive(
            st.sampled_from(
                [KEY, MAIL, f"\n{MAIL}", "4111 1111 1111 1111", "x", 7, None]
            )
            | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=12,
        )
    )
    def test_what_was_json_in_a_text_can_still_be_read(self, value):
        redacted = body_of(Body(input=json.dumps(value), output="x")).input
        json.loads(redacted)
        assert "jane.doe" not in redacted
        assert KEY not in redacted


class TestNames:
    @pytest.mark.parametrize(
        "field",
        ["api_key", "x-api-key", "clientSecret", "AWS_SECRET_ACCESS_KEY", "token"],
    )
    def test_a_value_is_found_by_the_name_of_its_field(self, field):
        secret = "9f86d081884c7d659a2feaa0c55ad015"
        assert body_of(Body(input={field: secret})).input == {field: "[redacted: key]"}
        pair = {"name": field, "value": secret}
        assert body_of(Body(input=[pair])).input[0]["value"] == "[redacted: key]"

    @pytest.mark.parametrize("field", ["id", "trace_id", "next_page_token", "keyword"])
    def test_other_fields_keep_the_same_value(self, field):
        value = {field: "9f86d081884c7d659a2feaa0c55ad015"}
        assert body_of(Body(input=value)).input == value

    def test_keys_that_hold_addresses_stay_apart(self):
        value = {"a@acme.com": 1, "b@acme.com": 2, "c": 3}
        new = body_of(Body(input=value)).input
        assert new == {"[redacted: e-mail]": 1, "[redacted: e-mail] (2)": 2, "c": 3}


def test_equal_texts_stay_equal():
    one, two = (body_of(Body(input={"to": MAIL, "n": n})) for n in (1, 1))
    assert one == two


def test_redacting_twice_changes_nothing_more():
    for rule in RULES:
        for text in rule.hits:
            once = Redactor().text(text)
            assert Redactor().text(once) == once


def test_the_structure_and_the_counts_of_real_traces_are_unchanged(shared_data):
    redactor = Redactor()
    for name in ("tau_bench_results/gpt-4o-airline.json",):
        with (shared_data / name).open("rb") as file:
            for item in read_file(file, name=name):
                if isinstance(item, Trace):
                    new = redactor.trace(item)
                    assert [_bare(s) for s in new.steps] == [
                        _bare(s) for s in item.steps
                    ]
    # Every hit in this file is an address at example.com; there are no keys in it.
    assert set(redactor.counts) == {"e-mail"}
    assert redactor.counts["e-mail"] > 100


def _bare(step: Step) -> Step:
    return msgspec.structs.replace(step, body=None, error_message=None)
