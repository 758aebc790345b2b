"""Lines of Claude Code sessions and streams, for the tests of its readers."""

from __future__ import annotations

from tests.formats.reading import lines, traces_of

ZERO = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
OUTPUTS = [112, 100, 86, 78, 70, 43]


def text(words):
    return {"type": "text", "text": words}


def use(own_id, name="Bash", **given):
    return {"type": "tool_use", "id": own_id, "name": name, "input": given}


def answer(own_id, *blocks, usage=None, stop="end_turn", **line):
    message = {
        "id": own_id,
        "role": "assistant",
        "model": "m-1",
        "content": list(blocks),
        "stop_reason": stop,
        "usage": usage or {"input_tokens": 5, "output_tokens": 7},
    }
    return {"type": "assistant", "message": message, "sessionId": "s1"} | line


def said(content, **line):
    return {"type": "user", "message": {"role": "user", "content": content},
            "sessionId": "s1"} | line  # fmt: skip


def result(own_id, output="ok", *, is_error=None, **line):
    block = {"type": "tool_result", "tool_use_id": own_id, "content": output}
    if is_error is not None:
        block["is_error"] = is_error
    return said([block], **line)


def stream(*events):
    """The same lines as a stream: without times and parents."""
    made = [{"type": "system", "subtype": "init", "session_id": "s1", "model": "m-1"}]
    for event in events:
        own = {key: item for key, item in event.items() if key != "sessionId"}
        made.append({"session_id": "s1", "parent_tool_use_id": None} | own)
    return made


SESSION = [
    said("go", uuid="u1", parentUuid=None, timestamp="2026-01-01T10:00:00Z"),
    answer("m1", {"type": "thinking", "thinking": "hm"}, stop=None, uuid="u2",
           timestamp="2026-01-01T10:00:01Z"),
    answer("m1", use("t1", "Task", prompt="look", subagent_type="Explore"),
           stop="tool_use", uuid="u3", timestamp="2026-01-01T10:00:02Z"),
    said("look", uuid="x1", parentUuid=None, isSidechain=True),
    answer("m2", use("t2", cmd="ls"), stop="tool_use", uuid="x2", parentUuid="x1",
           isSidechain=True),
    result("t2", "bad", is_error=True, uuid="x3", parentUuid="x2", isSidechain=True),
    answer("m3", text("seen"), uuid="x4", parentUuid="x3", isSidechain=True),
    result("t1", "seen", is_error=False, uuid="u4",
           toolUseResult={"status": "completed", "totalTokens": 9}),
    {"type": "system", "subtype": "compact_boundary", "sessionId": "s1", "uuid": "u5"},
    said("a summary", isCompactSummary=True, uuid="u6"),
    answer("m4", text("done"), uuid="u7"),
]  # fmt: skip


def read(*events):
    [trace] = traces_of(lines(*events))
    return trace


def retry(attempt):
    return {"type": "system", "subtype": "api_retry", "attempt": attempt,
            "max_retries": 10, "error": "server_error", "session_id": "s1"}  # fmt: skip


def ending(**fields):
    return {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2,
            "session_id": "s1", "duration_ms": 5} | fields  # fmt: skip
