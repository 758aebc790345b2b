"""One run as Phoenix exports it, in every shape that a user may have saved it in."""

from __future__ import annotations

import csv
import io
import json

from tests.formats.reading import as_json, lines

TRACE = "0123456789abcdef0123456789abcdef"


def ident(number):
    return f"{number:016x}"


def moment(number):
    return f"2026-11-30T03:00:{number:02}.000250+00:00"


def frame_row(number, parent, kind, name, **attributes):
    """A row of a data frame; `__` in a name is a dot."""
    return {
        "name": name,
        "span_kind": kind,
        "parent_id": ident(parent) if parent else None,
        "start_time": moment(number),
        "end_time": moment(number + (40 if kind == "AGENT" else 1)),
        "status_code": attributes.pop("status", "OK"),
        "status_message": attributes.pop("message", ""),
        "events": attributes.pop("events", []),
        "context.span_id": ident(number),
        "context.trace_id": TRACE,
        **{
            f"attributes.{key.replace('__', '.')}": value
            for key, value in attributes.items()
        },
    }


RAISED = [
    {
        "name": "exception",
        "timestamp": moment(6),
        "attributes": {"exception.type": "KeyError", "exception.message": "A-100"},
    }
]


def call(number, output, **more):
    return frame_row(
        number, 1, "LLM", "ChatModel",
        llm__model_name="m",
        llm__token_count__prompt=5.0,
        llm__token_count__completion=output,
        llm__input_messages=[{"message.role": "user", "message.content": "[why]"}],
        llm__output_messages=[
            {"message.role": "assistant", "message.content": "it's",
             "message.tool_calls": [{"tool_call.id": f"c{number}",
                                     "tool_call.function.name": "look"}]}],
        **more,
    )  # fmt: skip


ROWS = [
    frame_row(
        1, None, "AGENT", "run", agent__name="billing", session__id="s1",
        metadata={"trial": 2, "task": "refund"},
    ),
    call(2, 30.0),
    frame_row(3, 1, "TOOL", "look", tool__name="look", tool_call__id="c2",
              input__value="{\"q\": 1}", status="ERROR", message="no", events=RAISED),
    call(4, 20.0),
    call(6, 10.0),
]  # fmt: skip


def columns():
    return list(dict.fromkeys(name for row in ROWS for name in row))


def table(write=str, mark=",", rows=None):
    """The rows as CSV; `write` makes the text of lists and objects."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(["", *columns()])
    for number, row in enumerate(ROWS if rows is None else rows):
        cells = [row.get(name) for name in columns()]
        writer.writerow(
            [number, *(write(c) if isinstance(c, list | dict) else c for c in cells)]
        )
    return file.getvalue().encode()


def nested(row):
    """The attributes of a row with objects in place of dots."""
    tree = {}
    for name, value in row.items():
        if name.startswith("attributes."):
            *parts, last = name.removeprefix("attributes.").split(".")
            node = tree
            for part in parts:
                node = node.setdefault(part, {})
            node[last] = value
    return tree


def rest(row, attributes):
    kept = ("name", "span_kind", "parent_id", "start_time", "end_time", "status_code",
            "status_message", "events")  # fmt: skip
    context = {"trace_id": TRACE, "span_id": row["context.span_id"]}
    return {
        "id": "U3Bhbjox",
        "context": context,
        **{key: row[key] for key in kept},
        "attributes": attributes,
    }


def flat(row):
    return {
        name.removeprefix("attributes."): value
        for name, value in row.items()
        if name.startswith("attributes.")
    }


def graph(row):
    return {
        "node": {
            "name": row["name"],
            "spanKind": row["span_kind"].lower(),
            "context": {"traceId": TRACE, "spanId": row["context.span_id"]},
            "parentId": row["parent_id"],
            "startTime": row["start_time"],
            "endTime": row["end_time"],
            "statusCode": row["status_code"],
            "statusMessage": row["status_message"],
            "events": row["events"],
            "attributes": json.dumps(nested(row)),
        }
    }


def by_column():
    return {
        name: {str(at): row.get(name) for at, row in enumerate(ROWS)}
        for name in columns()
    }


def without_id(row):
    return {key: item for key, item in row.items() if key != "context.span_id"}


SHAPES = {
    "records": as_json(ROWS),
    "lines": lines(*ROWS),
    "columns": as_json(by_column()),
    "index": as_json({row["context.span_id"]: without_id(row) for row in ROWS}),
    "split": as_json({"columns": columns(), "index": list(range(5)),
                      "data": [[row.get(n) for n in columns()] for row in ROWS]}),
    "csv of literals": table(),
    "csv of json": table(json.dumps),
    "csv of arrays": table(lambda c: str(c).replace("}, {", "}\n {")),
    "tsv": table(mark="\t"),
    "rest flat": as_json({"data": [rest(r, flat(r)) for r in ROWS], "next_cursor": "x"}),
    "rest nested": as_json({"data": [rest(r, nested(r)) for r in ROWS]}),
    "rest pages": lines({"data": [rest(r, flat(r)) for r in ROWS[:2]]},
                        {"data": [rest(r, flat(r)) for r in ROWS[2:]]}),
    "graphql": as_json({"data": {"node": {"spans": {"edges": [graph(r) for r in ROWS]}}}}),
}  # fmt: skip
