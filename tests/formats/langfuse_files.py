"""Small Langfuse files, written by ourselves in the forms that Langfuse has."""

from __future__ import annotations

import csv
import io
import json

from apps.engine.sequences import serial_sequences
from tests.formats.reading import as_json, traces_of

SLUG = "langfuse"
RUN = "ab" * 16


def observed(number, parent, kind, at=0, lasts=1, **fields):
    return {"id": f"o{number}", "traceId": RUN, "type": kind, "name": f"n{number}",
            "parentObservationId": parent and f"o{parent}",
            "startTime": f"2025-01-01T00:00:{at:06.3f}Z",
            "endTime": f"2025-01-01T00:00:{at + lasts:06.3f}Z", "level": "DEFAULT",
            "statusMessage": None, "input": None, "output": None, "metadata": "{}",
            "model": None, "usageDetails": {}, "inputUsage": 0, "outputUsage": 0,
            "totalUsage": 0, **fields}  # fmt: skip


def generation(number, parent, output, at=0, **fields):
    told = {"input": 10, "output": output, "total": output + 10}
    more = {"usageDetails": told, "outputUsage": output, "model": "m", **fields}
    return observed(number, parent, "GENERATION", at, **more)


def described(**fields):
    return {"id": RUN, "projectId": "p", "name": "Support", "sessionId": "chat-1",
            "timestamp": "2025-01-01T00:00:00Z", "environment": "default",
            "bookmarked": False, "public": False, "input": None, "output": None,
            "metadata": json.dumps({"trial": 3, "task": "refund"}), "scores": [],
            **fields}  # fmt: skip


def billing():
    made = [observed(1, None, "AGENT", 0, 30, name="Triage"),
            generation(2, 1, 112, 1),
            observed(3, 1, "AGENT", 3, 20, name="Billing")]  # fmt: skip
    for index, output in enumerate((100, 86, 43)):
        made.append(generation(10 + index, 3, output, 4 + 2 * index))
        made.append(observed(20 + index, 3, "TOOL", 5 + 2 * index, 0.5, name="ledger"))
    return made


def download(observations, **fields):
    bare = [{**one, "input": None, "output": None} for one in observations]
    return {
        "trace": described(observations=bare, **fields),
        "observations": observations,
    }


def only(*observations, **fields):
    [found] = traces_of(as_json(download(list(observations), **fields)), SLUG)
    return found


def call_of(**fields):
    [step] = only(observed(1, None, "GENERATION", **fields)).steps
    return step.call


def sequences(found):
    return [(one.agent, one.outputs) for one in serial_sequences(found)]


def as_csv(found):
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(found[0])
    for one in found:
        writer.writerow(
            [
                json.dumps(cell) if isinstance(cell, dict | list)
                else "" if cell is None else cell
                for cell in one.values()
            ]
        )  # fmt: skip
    return out.getvalue().encode()


def attributes(**fields):
    return json.dumps({"attributes": fields, "scope": {"name": "some.instrumentation"}})
