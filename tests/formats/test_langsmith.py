"""LangSmith runs: lines, pages, batches; agents of graphs, usage, passed-on errors."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    OutcomeKind,
    StepKind,
    StepStatus,
    Trace,
    UsageState,
)
from tests.formats.index import DATA, expected, rows
from tests.formats.reading import (
    as_json,
    counts_of,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)

SLUG = "langsmith"


def uid(number):
    return f"{number:08d}-0000-4000-8000-{number:012d}"


def moment(at):
    return f"2025-01-01T00:00:{at:09.6f}Z"


def segment(number, at):
    return f"20250101T0000{at:09.6f}Z{uid(number)}".replace(".", "")


def run(number, parent, kind, at=0.0, lasts=1, *, metadata=None, **fields):
    """A run below `parent`, another run or None, as the API returns it."""
    above = parent["dotted_order"] + "." if parent else ""
    inherited = {"thread_id": "chat-1", "trial": 2}
    return {"id": uid(number), "name": f"n{number}", "run_type": kind,
            "start_time": moment(at), "end_time": moment(at + lasts), "error": None,
            "status": "success", "inputs": {}, "outputs": {}, "tags": [],
            "extra": {"metadata": inherited | (metadata or {})},
            "parent_run_id": parent and parent["id"], "session_id": "project-9",
            "trace_id": uid(1), "dotted_order": above + segment(number, at),
            "prompt_tokens": None, "completion_tokens": None, "total_tokens": None,
            **fields}  # fmt: skip


def answer(text="x", finish="stop", usage=None, calls=()):
    message = {"content": text, "type": "ai", "usage_metadata": usage,
               "response_metadata": {"finish_reason": finish, "id": "chatcmpl-" + text},
               "tool_calls": list(calls)}  # fmt: skip
    generation = {"text": text, "generation_info": {"finish_reason": finish},
                  "message": {"lc": 1, "type": "constructor", "kwargs": message}}  # fmt: skip
    return {"generations": [[generation]], "llm_output": None}


def counts(output):
    return {"input_tokens": 10, "output_tokens": output, "total_tokens": output + 10}


def llm(number, parent, output, at=0.0, *, metadata=None, **fields):
    told = {"ls_model_name": "m", "ls_provider": "openai", **(metadata or {})}
    more = {"outputs": answer(str(number), usage=counts(output)), **fields}
    return run(number, parent, "llm", at, 0.5, metadata=told, **more)


def node(name, path):
    return {"langgraph_node": name, "langgraph_checkpoint_ns": path}


def graph():
    """A supervisor's one call, then a billing agent whose node agent runs thrice."""
    root = run(1, None, "chain", 0, 50, name="LangGraph")
    first = run(2, root, "chain", 1, metadata=node("supervisor", "supervisor:a"))
    outer = run(4, root, "chain", 3, 40, metadata=node("billing", "billing:b"))
    inner = run(5, outer, "chain", 3, 40, metadata=node("billing", "billing:b"))
    made = [root, first, llm(3, first, 103, 1, metadata=node("supervisor", "supervisor:a")),
            outer, inner]  # fmt: skip
    for index, output in enumerate((100, 86, 43)):
        turn, tools = (
            node("agent", f"billing:b|agent:{index}"),
            node("tools", f"billing:b|t:{index}"),
        )
        at = 4 + 4 * index
        visit = run(10 + index, inner, "chain", at, metadata=turn)
        sequence = run(20 + index, visit, "chain", at, metadata=turn)
        after = run(40 + index, inner, "chain", at + 2, metadata=tools)
        made += [visit, sequence, llm(30 + index, sequence, output, at, metadata=turn),
                 after, run(50 + index, after, "tool", at + 2, name="ledger",
                            metadata=tools)]  # fmt: skip
    return made


def only(*runs):
    [found] = traces_of(lines(*runs), SLUG)
    return found


def sequences(found):
    return [(one.agent, one.outputs) for one in serial_sequences(found)]


def as_batches(runs):
    posts = [
        {
            k: v
            for k, v in one.items()
            if k not in {"end_time", "outputs", "error", "status"}
        }
        for one in runs
    ]
    patches = [
        {
            k: one[k]
            for k in ("id", "trace_id", "dotted_order", "end_time", "outputs", "status")
        }
        for one in runs
    ]
    return posts, patches


def nested(runs):
    by_id = {one["id"]: {**one, "child_runs": []} for one in runs}
    for one in by_id.values():
        if one["parent_run_id"]:
            by_id[one["parent_run_id"]]["child_runs"].append(one)
    return by_id[uid(1)]


def test_it_gives_each_call_to_the_agent_of_its_graph():
    found = only(*graph())
    assert sequences(found) == [("supervisor", (103,)), ("billing", (100, 86, 43))]
    tools = [step for step in found.steps if step.kind is StepKind.TOOL_CALL]
    assert {found.invocations[step.invocation].agent for step in tools} == {"billing"}
    assert (found.name, found.session, found.trial, found.native_id) == (
        "LangGraph", "chat-1", 2, uid(1))  # fmt: skip
    assert found.metadata["project_id"] == "project-9"


@pytest.mark.parametrize(
    "data",
    [
        lines(*graph()),
        lines(*reversed(graph())),
        as_json(graph()),
        as_json({"runs": graph(), "cursors": {"next": None}}),
        lines({"runs": graph()[:4]}, {"runs": graph()[4:]}),
        as_json(nested(graph())),
        as_json({"post": graph(), "patch": []}),
        as_json({"post": as_batches(graph())[0], "patch": as_batches(graph())[1]}),
        lines({"patch": as_batches(graph())[1]}, {"post": as_batches(graph())[0]}),
    ],
)
def test_it_reads_the_same_run_alike_in_every_form(data):
    assert slug_of(data) == SLUG
    [found] = traces_of(data)
    assert found.steps == only(*graph()).steps
    assert found.invocations == only(*graph()).invocations


def test_it_finds_trace_parent_and_start_in_the_dotted_order_alone():
    root = run(1, None, "chain")
    child = run(2, root, "llm", 3)
    bare = {key: child[key] for key in ("id", "dotted_order", "run_type", "inputs")}
    found = only(root, bare)
    assert found.steps[1].parent == 0
    assert found.steps[1].start_ns - found.steps[0].start_ns == 3 * 10**9


def usage_of(**fields):
    [step] = only(run(1, None, "llm", **fields)).steps
    return step.call.usage


@pytest.mark.parametrize(
    "fields",
    [
        {"outputs": answer(usage=counts(5))},
        {"metadata": {"usage_metadata": counts(5)}},
        {"outputs": {"generations": [], "llm_output": {"token_usage": {
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}}},
        {"outputs": {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,
                                              "total_tokens": 15}}},
        {"outputs": answer(usage=counts(5)), "prompt_tokens": 10, "completion_tokens": 5,
         "total_tokens": 15},
        {"outputs": answer(usage=counts(5)), "prompt_tokens": 0, "completion_tokens": 0,
         "total_tokens": 0},
        {"outputs": {}, "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    ],
)  # fmt: skip
def test_it_reads_usage_from_every_place_it_may_stand_in(fields):
    told = usage_of(**fields)
    assert (told.input_total, told.output_total, told.total) == (10, 5, 15)
    assert told.state is UsageState.REPORTED


def test_it_keeps_cached_and_reasoning_tokens_apart():
    told = counts(5) | {"input_token_details": {"cache_read": 6},
                        "output_token_details": {"reasoning": 2}}  # fmt: skip
    found = usage_of(outputs=answer(usage=told))
    assert (found.input_cached, found.output_reasoning) == (6, 2)
    beside = usage_of(prompt_tokens=10, completion_tokens=5, outputs=None,
                      prompt_token_details={"cache_read": 6},
                      completion_token_details={"reasoning": 2})  # fmt: skip
    assert (beside.input_cached, beside.output_reasoning) == (6, 2)


def test_it_says_missing_estimated_or_suspect_and_never_zero():
    assert usage_of(outputs=answer()).state is UsageState.MISSING
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert usage_of(outputs=answer(), **zeros).state is UsageState.ZERO_SUSPECT
    estimated = usage_of(outputs=answer(), prompt_tokens=9, completion_tokens=4)
    assert estimated.state is UsageState.VENDOR_ESTIMATE


def test_it_compares_the_sum_of_a_chain_with_its_calls():
    root = run(1, None, "chain", 0, 9, prompt_tokens=10, completion_tokens=99)
    assert any(
        "differ from the sum" in note for note in only(root, llm(2, root, 5)).notes
    )
    root = run(1, None, "chain", 0, 9, prompt_tokens=0, completion_tokens=0)
    assert not only(root, llm(2, root, 5)).notes


def test_it_reads_the_answer_of_a_model():
    calls = [{"name": "t", "args": {}, "id": "call_7", "type": "tool_call"}]
    root = run(1, None, "chain", 0, 9)
    model = llm(2, root, 5, outputs=answer("a", "tool_calls", counts(5), calls))
    tool = run(3, root, "tool", 2, name="t", extra={"tool_call_id": "call_7"})
    found = only(root, model, tool)
    call = found.steps[1].call
    assert (call.model, call.provider, call.response_id) == (
        "m",
        "openai",
        "chatcmpl-a",
    )
    assert call.finish is FinishReason.TOOL_CALLS
    assert call.tool_call_ids == ("call_7",)
    assert found.steps[2].call.requested_by == 1


ERROR = "RuntimeError('backend timeout')Traceback (most recent call last):\n  File x"


def test_it_marks_the_failures_that_only_repeat_the_one_below():
    root = run(1, None, "chain", 0, 9, error=ERROR + " of root")
    middle = run(2, root, "chain", 1, 5, error=ERROR + " of middle")
    tool = run(3, middle, "tool", 2, error=ERROR)
    found = only(root, middle, tool)
    assert {step.status for step in found.steps} == {StepStatus.ERROR}
    assert {step.error_type for step in found.steps} == {"RuntimeError"}
    assert found.steps[2].error_message == "RuntimeError('backend timeout')"
    assert any("only repeat the error" in note and "2" in note for note in found.notes)


def test_it_counts_two_failures_where_a_second_one_followed():
    root = run(1, None, "chain", 0, 9, error="ValueError('gave up')")
    tool = run(2, root, "tool", 2, error=ERROR)
    assert not only(root, tool).notes


def test_it_takes_no_handing_over_of_a_graph_for_a_failure():
    root = run(1, None, "chain", error="GraphInterrupt((Interrupt(value='ok?'),))",
               status="error")  # fmt: skip
    found = only(root)
    assert found.steps[0].status is StepStatus.UNSET
    assert "to ask a person" in found.notes[0]


def test_it_sees_a_failure_that_a_tool_only_reported():
    message = {"type": "tool", "status": "error", "content": "no such id",
               "tool_call_id": "c1"}  # fmt: skip
    [step] = only(run(1, None, "tool", outputs={"output": message})).steps
    assert (step.status, step.error_message) == (StepStatus.ERROR, "no such id")
    assert step.call.call_id == "c1"


def visits(*outputs):
    """A graph whose node agent is visited once for each group of outputs."""
    made = [run(1, None, "chain", 0, 50, name="LangGraph")]
    for index, group in enumerate(outputs):
        at = 1 + 9 * index
        place = node("agent", f"agent:{index}")
        visit = run(10 + index, made[0], "chain", at, 8, name="agent", metadata=place)
        calls = [
            llm(100 + 10 * index + n, visit, output, at + 2 * n, metadata=place)
            for n, output in enumerate(group)
        ]
        made += [visit, *calls]
    return only(*made)


def test_it_takes_the_visits_of_the_only_calling_node_for_turns_of_the_graph():
    assert sequences(visits([9], [8], [7])) == [("LangGraph", (9, 8, 7))]
    assert sequences(visits([9])) == [("LangGraph", (9,))]


def test_it_takes_each_visit_with_several_calls_for_an_invocation():
    assert sequences(visits([9, 8], [7, 6])) == [("agent", (9, 8)), ("agent", (7, 6))]


def test_it_names_an_agent_by_metadata_where_no_graph_does():
    agent = {"lc_agent_name": "helper"}
    root = run(1, None, "chain", 0, 9)
    made = run(2, root, "chain", 1, 7, metadata=agent)
    calls = [llm(3 + n, made, 9 - n, 2 + n, metadata=agent) for n in range(3)]
    assert sequences(only(root, made, *calls)) == [("helper", (9, 8, 7))]


def test_it_takes_feedback_for_labels_and_only_a_verdict_for_the_outcome():
    stats = {"correctness": {"n": 1, "avg": 1.0}}
    found = only(
        run(1, None, "chain", feedback_stats=stats, reference_example_id="ex-1")
    )
    assert found.outcome.kind is OutcomeKind.UNKNOWN
    assert found.labels["feedback_stats"] == stats
    assert found.task == "ex-1"
    told = only(run(1, None, "chain", feedback_stats={"success": {"n": 1, "avg": 0.0}}))
    assert told.outcome.kind is OutcomeKind.FAIL
    mean = only(run(1, None, "chain", feedback_stats={"success": {"n": 3, "avg": 1.0}}))
    assert mean.outcome.kind is OutcomeKind.UNKNOWN


def test_it_rejects_what_is_no_run_and_keeps_the_rest():
    bad = [{"id": 3}, 7, {"run_type": "llm"}]
    items = items_of(as_json([*graph(), *bad]), SLUG)
    assert len(rejected_of(items)) == 3
    [found] = [one for one in items if isinstance(one, Trace)]
    assert found.steps == only(*graph()).steps
    inside = items_of(as_json({"runs": [*graph(), *bad]}), SLUG)
    assert rejected_of(inside)[0].place.endswith(f"$.runs[{len(graph())}]")


@pytest.mark.parametrize(
    "value", [{"runs": []}, {"post": []}, [], [{"id": 1}], {"id": "a"}]
)
def test_it_recognises_nothing_else_as_langsmith(value):
    assert slug_of(as_json(value)) != SLUG
    assert refusal_of(as_json(value), SLUG).endswith(".")


@pytest.mark.parametrize("row", rows("langsmith_runs_jsonl", "langsmith_ingest_batch"))
def test_it_finds_the_counts_of_the_index(row):
    assert counts_of(traces_of((DATA / row["path"]).read_bytes())) == expected(row)


def test_it_finds_no_usage_in_a_real_streamed_run(shared_data):
    path = shared_data / "langsmith_runs_jsonl/streamed_no_usage.jsonl"
    [found] = traces_of(path.read_bytes())
    assert sequences(found) == [("supervisor", (103,)), ("billing_agent", (None,) * 6)]
