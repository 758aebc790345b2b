"""The page of a trace: what a reviewer reads of each step, and what it says is missing."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.urls import reverse
from msgspec.structs import replace

from apps.engine.trace import (
    Body,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    Usage,
    UsageState,
)
from apps.traces.models import Trace, Upload
from apps.traces.transitions import RawKept
from tests.factories import (
    CHAT,
    SECOND,
    START,
    chat_bytes,
    decay_trace,
    model_call,
    tool_call,
    trace_of,
    upload_bytes,
    upload_traces,
)

ASKED = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Where is parcel 8?"}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "name": "find", "arguments": {"id": 8}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "response": "Graz"}]},
]
ANSWER = [
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "Graz it is."},
            {"type": "text", "content": "It left <Graz>."},
        ],
        "finish_reason": "stop",
    }
]
COUNTED = Usage(
    state=UsageState.REPORTED,
    input_total=1240,
    input_cached=1024,
    output_total=112,
    output_reasoning=64,
    source="gen_ai.usage.output_tokens",
)


def spoken_step(seq: int = 0, *, usage: Usage = COUNTED) -> Step:
    return Step(
        seq=seq,
        kind=StepKind.MODEL_CALL,
        invocation=0,
        start_ns=START,
        end_ns=START + SECOND,
        call=ModelCall(model="m", usage=usage),
        body=Body(input=ASKED, output=ANSWER),
    )


def page_of(web, project, query: str = "") -> str:
    trace = Trace.objects.get()
    url = reverse("trace", args=[project.slug, trace.pk])
    return web.get(url + query).content.decode()


def body_of(web, project, seq: int = 0, query: str = "") -> str:
    url = reverse("step-body", args=[project.slug, Trace.objects.get().pk, seq])
    return web.get(url + query).content.decode()


class TestAStepThatIsJson:
    @pytest.fixture(autouse=True)
    def _uploaded(self, project):
        upload_traces(project, trace_of([spoken_step()]))

    def test_the_answer_is_read_out_and_comes_before_what_was_asked(self, web, project):
        text = page_of(web, project)
        answer = text.index('<p class="step-text">It left &lt;Graz&gt;.</p>')
        assert answer < text.index("<b>Given</b> tool: result: Graz")
        assert "finish_reason" not in text

    def test_the_preview_says_what_it_does_not_show(self, web, project):
        text = page_of(web, project)
        assert "(3 messages before)" in text
        assert "its thinking, the recorded JSON, its whole input, its usage" in text

    def test_the_whole_step_has_the_text_first_and_the_json_below(self, web, project):
        text = body_of(web, project)
        assert text.index(">It left &lt;Graz&gt;.</pre>") < text.index(
            "As recorded: JSON"
        )
        assert '<pre class="thought" tabindex="0">Graz it is.</pre>' in text
        assert text.index("<h4>Output</h4>") < text.index("<h4>Input</h4>")
        assert "3 messages before" in text
        assert "find({&quot;id&quot;:8})" in text
        assert "Not in this text, but in the JSON: finish_reason." in text

    def test_the_download_is_the_value_as_it_was_recorded(self, web, project):
        text = body_of(web, project, query="?as=text")
        output = text.removeprefix("Output\n").split("\n\nInput\n")
        assert [json.loads(one) for one in output] == [ANSWER, ASKED]

    def test_the_whole_step_has_every_count_its_state_and_its_field(self, web, project):
        text = body_of(web, project)
        for words in (
            "<dt>State</dt><dd>reported: input and output counts are there</dd>",
            "<dt>Input tokens</dt><dd>1\u202f240</dd>",
            "<dt>Input tokens from a cache</dt><dd>1\u202f024</dd>",
            "<dt>Output tokens of reasoning</dt><dd>64</dd>",
            "<dt>Read from</dt><dd>gen_ai.usage.output_tokens</dd>",
        ):
            assert words in text

    def test_the_line_has_input_and_output_with_their_parts(self, web, project):
        words = "1\u202f240 tokens in (1\u202f024 cached), 112 out (64 reasoning)"
        assert words in page_of(web, project)


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(), "usage not reported"),
        (
            Usage(state=UsageState.PARTIAL, output_total=1),
            ">1 token out<",
        ),
        (
            Usage(state=UsageState.PARTIAL, input_total=5),
            "5 tokens in; output length not reported",
        ),
        (
            Usage(state=UsageState.VENDOR_ESTIMATE, input_total=5, output_total=2),
            "5 tokens in, 2 out; an estimate, not used by checks",
        ),
        (Usage(state=UsageState.ZERO_SUSPECT), "reported as zero: not trusted"),
    ],
)
def test_a_line_says_how_far_its_usage_is_known(web, project, usage, words):
    upload_traces(project, trace_of([spoken_step(usage=usage)]))
    assert words in page_of(web, project)


def test_arguments_of_a_tool_are_never_taken_for_messages(web, project):
    arguments = {"role": "user", "content": "Hello"}
    step = tool_call(0, "send")
    body = Body(input=arguments, output=[{"type": "text", "text": "Sent."}])
    upload_traces(project, trace_of([replace(step, body=body)]))
    text = body_of(web, project)
    assert "&quot;role&quot;: &quot;user&quot;" in text
    assert ">Sent.</pre>" in text
    assert '<p class="step-text">Sent.</p>' in page_of(web, project)


def test_a_call_without_a_text_says_how_many_tools_it_asks_for(web, project):
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "f", "arguments": "{}"},
        }
        for n in range(2)
    ]
    asks = {"role": "assistant", "content": None, "tool_calls": calls}
    upload_bytes(project, chat_bytes([*CHAT[:2], asks]))
    assert "[no text; asks for 2 tool calls]" in page_of(web, project)


def test_a_history_that_is_too_long_to_show_says_how_much_is_only_in_the_json(
    web, project
):
    long = [{"role": "user", "content": "x" * 40_000}] * 5
    step = Step(
        seq=0,
        kind=StepKind.MODEL_CALL,
        invocation=0,
        call=ModelCall(),
        body=Body(input=long, output="Yes."),
    )
    upload_traces(project, trace_of([step]))
    text = body_of(web, project)
    assert "3 messages more are only in the recorded JSON" in text
    assert len(text) < 300_000


class TestOrderAndTimes:
    def test_a_file_order_beside_recorded_times_is_only_called_a_file_order(
        self, web, project
    ):
        upload_traces(project, replace(decay_trace(5, 6), order=OrderSource.FILE))
        text = page_of(web, project)
        assert "by position in the file" in text
        assert "no times are recorded" not in text

    def test_without_any_time_it_says_that_none_is_recorded(self, web, project):
        upload_bytes(project, chat_bytes(CHAT))
        words = "by position in the file: no times are recorded"
        assert words in page_of(web, project)

    def test_an_end_that_is_the_start_is_no_duration(self, web, project):
        moment = model_call(0, 5)
        moment = replace(moment, end_ns=moment.start_ns)
        upload_traces(project, trace_of([moment, model_call(1, 5)]))
        text = page_of(web, project)
        assert "0 ms" not in text.replace("500 ms", "")
        assert text.count("<span>500 ms</span>") == 1

    def test_what_took_less_than_a_millisecond_did_not_take_none(self, web, project):
        short = model_call(0, 5)
        short = replace(short, end_ns=short.start_ns + 400_000)
        upload_traces(project, trace_of([short]))
        text = page_of(web, project)
        assert "<span>under 1 ms</span>" in text
        assert "0 ms" not in text


class TestTheRawUpload:
    def test_it_is_offered_while_its_bytes_are_kept(self, web, project):
        upload_traces(project, decay_trace(5))
        assert ">Raw upload<" in page_of(web, project).replace("</svg>", ">")

    def test_it_is_not_offered_once_the_bytes_are_gone(self, web, project):
        upload_traces(project, decay_trace(5))
        Upload.objects.update(raw_kept=RawKept.GONE.value)
        assert "Raw upload" not in page_of(web, project)


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("An invented desk", "An invented desk. 0 signals wait"),
        ("An invented desk.", "An invented desk. 0 signals wait"),
        ("Does it forget?  ", "Does it forget? 0 signals wait"),
        ("", ">0 signals wait"),
    ],
)
def test_the_description_of_a_project_ends_before_the_next_sentence_begins(
    web, project, description, shown
):
    type(project).objects.filter(pk=project.pk).update(description=description)
    text = web.get(reverse("overview", args=[project.slug])).content.decode()
    assert shown in text


@pytest.mark.parametrize("name", ["formats", "api"])
def test_the_tables_of_a_reference_page_become_cards_on_a_narrow_screen(web, name):
    text = web.get(reverse(name)).content.decode()
    assert text.count("<table") == text.count(' cards">') > 0
    assert "data-label=" in text


def test_the_list_of_traces_is_searched_for_a_session(web, project):
    upload_traces(
        project,
        decay_trace(5, session="s-17", name="found"),
        decay_trace(6, session="s-18", name="other"),
    )
    url = reverse("traces", args=[project.slug])
    text = web.get(url + "?q=s-17").content.decode()
    assert "whole trace or session id" in text
    assert ">found<" in text
    assert ">other<" not in text
    assert ">found<" not in web.get(url + "?q=s-1").content.decode()


def test_a_search_for_a_session_can_use_its_index(project):
    upload_traces(
        project,
        *[decay_trace(5, session=f"s-{n}", name=f"run {n}") for n in range(200)],
    )
    found = Trace.objects.filter(project=project, session="s-17")
    with connection.cursor() as cursor:
        # Which index is cheapest is known from what lies there, not from an empty table.
        cursor.execute("ANALYZE traces_trace")
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "trace_by_session" in found.explain()
