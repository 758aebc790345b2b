"""Parts of the AI SDK's streams (fullStream, UI message stream), made into steps.

Version 4 ends a step with step-finish, later ones with finish-step; the parts of a UI
message stream record no usage.
Source: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from apps.engine.reading.recorded import mapping, word

Step = dict[str, Any]

_BEGINS: Final = frozenset({"start-step", "step-start"})
_ENDS: Final = frozenset({"finish-step", "step-finish"})
_KEPT: Final = {
    "tool-call": "tool-call", "tool-input-available": "tool-call",
    "tool-input-error": "tool-call", "tool-result": "tool-result",
    "tool-output-available": "tool-result", "tool-error": "tool-error",
    "tool-output-error": "tool-error",
}  # fmt: skip
_GROWS: Final = {
    "text-delta": "text", "text": "text", "reasoning-delta": "reasoning",
    "reasoning": "reasoning",
}  # fmt: skip

# What only announces, ends or adorns the parts that are read.
_ASIDE: Final = frozenset(
    {
        "start", "finish", "abort", "message-metadata", "message-start", "raw",
        "text-start", "text-end", "reasoning-start", "reasoning-end",
        "reasoning-signature", "redacted-reasoning", "tool-input-start",
        "tool-input-delta", "tool-input-end", "tool-call-streaming-start",
        "tool-call-delta", "source", "source-url", "source-document",
    }
)  # fmt: skip


def begins_stream(values: list[Any]) -> bool:
    """Whether one of the first values of a file begins a step of a stream."""
    return any(word(mapping(value).get("type")) in _BEGINS for value in values)


class StreamedSteps:
    """Collects the parts of streams; `runs` holds the steps of each run.

    `unread` counts parts of kinds that are not known, or that no step holds.
    """

    def __init__(self) -> None:
        self.runs: list[list[Step]] = []
        self.unread: Counter[str] = Counter()
        self._step: Step | None = None

    def take(self, part: Any) -> bool:
        """Take a value that is a part of a stream; whether it was."""
        kind = word(mapping(part).get("type"))
        if not kind or "role" in part:
            return False
        if kind == "start" or not self.runs:
            self.runs.append([])
        if kind in _BEGINS:
            self._step = {"content": [], "request": part.get("request")}
            self.runs[-1].append(self._step)
        elif kind in _ENDS and self._step is not None:
            keys = ("finishReason", "rawFinishReason", "usage", "response")
            self._step |= {key: part[key] for key in keys if key in part}
            self._step = None
        else:
            self._grow(kind, part)
        return True

    def _grow(self, kind: str, part: Step) -> None:
        # The result of a tool may come after the end of the step that asked for it.
        step = self._step or (self.runs[-1][-1] if self.runs[-1] else None)
        if step is None:
            self.unread[kind] += kind not in _ASIDE
            return
        if kind == "error":
            step["error"] = part.get("error") or part.get("errorText")
        elif kind in _KEPT:
            step["content"].append(part | {"type": _KEPT[kind]})
        elif kind in _GROWS:
            said = part.get("text") or part.get("textDelta") or part.get("delta")
            _say(step["content"], _GROWS[kind], said)
        elif kind not in _ASIDE and not kind.startswith("data-"):
            self.unread[kind] += 1


def _say(content: list[Any], kind: str, said: Any) -> None:
    if not isinstance(said, str):
        return
    if content and content[-1].get("type") == kind:
        content[-1]["text"] += said
    else:
        content.append({"type": kind, "text": said})
