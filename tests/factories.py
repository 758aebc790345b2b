"""Builds state the way the product does: through operations, never around them."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

from apps.accounts.models import Project, User
from apps.accounts.operations import create_project, set_role
from apps.accounts.permissions import Role
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    ToolCall,
    Trace,
    Usage,
    UsageState,
)
from apps.pipeline.flow import submit_upload
from apps.pipeline.reading import read_upload
from apps.screening.definitions import Wanted, define
from apps.screening.models import Definition
from apps.traces.models import TraceSet, Upload
from apps.traces.sets import Chosen, NewSet, make_set
from apps.traces.storage import receive

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_numbers = itertools.count(1)
SECOND = 1_000_000_000
START = 1_772_000_000 * SECOND


def make_user(name: str = "") -> User:
    return User.objects.create_user(
        username=name or f"user{next(_numbers)}", password="correct horse battery"
    )


def make_project(*, owner: User | None = None, name: str = "") -> Project:
    return create_project(
        name=name or f"Project {next(_numbers)}", owner=owner or make_user(), now=NOW
    )


def make_member(project: Project, role: Role, name: str = "") -> User:
    user = make_user(name)
    set_role(project=project, user=user, role=role, now=NOW)
    return user


def usage(output: int | None, input_total: int | None = None) -> Usage:
    if output is None:
        return Usage()
    return Usage(
        state=UsageState.REPORTED, input_total=input_total, output_total=output
    )


def model_call(seq: int, output: int | None, **more: Any) -> Step:
    return Step(
        seq=seq,
        kind=StepKind.MODEL_CALL,
        invocation=0,
        start_ns=START + seq * SECOND,
        end_ns=START + seq * SECOND + SECOND // 2,
        call=ModelCall(provider="openai", model="gpt-4o", usage=usage(output), **more),
        body=Body(input=f"prompt {seq}", output=f"answer {seq}"),
    )


def tool_call(seq: int, name: str) -> Step:
    return Step(
        seq=seq,
        kind=StepKind.TOOL_CALL,
        invocation=0,
        start_ns=START + seq * SECOND,
        end_ns=START + seq * SECOND + SECOND // 2,
        call=ToolCall(name=name, call_id=f"call_{seq}"),
        body=Body(input={"number": seq}, output="done"),
    )


def trace_of(steps: list[Step], *, name: str = "run", **more: Any) -> Trace:
    return Trace(
        name=name,
        steps=tuple(steps),
        invocations=(AgentInvocation(number=0, agent="planner"),),
        start_ns=START,
        order=OrderSource.TIME,
        outcome=more.pop("outcome", Outcome(kind=OutcomeKind.PASS)),
        **more,
    )


def decay_trace(*lengths: int | None, **more: Any) -> Trace:
    steps = [model_call(seq, length) for seq, length in enumerate(lengths)]
    return trace_of(steps, **more)


def tools_trace(*names: str, **more: Any) -> Trace:
    return trace_of([tool_call(seq, name) for seq, name in enumerate(names)], **more)


def chat_bytes(*conversations: list[dict[str, Any]]) -> bytes:
    """Conversations as OpenAI chat JSONL."""
    lines = [json.dumps({"messages": messages}) for messages in conversations]
    return ("\n".join(lines) + "\n").encode()


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is order 17?"},
    {"role": "assistant", "content": "It left the warehouse today."},
]


def upload_bytes(
    project: Project, content: bytes, *, name: str = "traces.jsonl", override: str = ""
) -> Upload:
    """Upload and read bytes in this process, without a worker."""
    upload, _ = submit_upload(
        project=project,
        received=receive([content], limit=10**9, name=name),
        user=None,
        now=NOW,
        format_override=override,
    )
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    return upload


def upload_traces(project: Project, *traces: Trace, name: str = "made.jsonl") -> Upload:
    """Upload engine traces as Evalsite JSONL and read them in this process."""
    return upload_bytes(project, b"".join(dump(trace) for trace in traces), name=name)


NO_REFUND = {"operator": "never", "select": {"kind": "tool_call", "name": "refund"}}


def make_trace_set(project: Project, name: str = "Release 4") -> TraceSet:
    """A set of all traces of the project."""
    new = NewSet(name, Chosen())
    return make_set(project=project, new=new, user_id=None, now=NOW)


def make_contract(
    project: Project, spec: dict[str, Any] = NO_REFUND, *, label: str = "No refund"
) -> Definition:
    """A contract of the project; its traces have not been checked yet."""
    wanted = Wanted(kind="contract", label=label, spec=spec)
    return define(project_id=project.pk, wanted=wanted, user_id=None, now=NOW)
