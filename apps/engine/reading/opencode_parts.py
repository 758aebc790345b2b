"""The parts of one answer of opencode, made into model calls and tool calls."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.recorded import kind_of, mapping, text_in
from apps.engine.reading.text_limits import IDENTIFIER, NAME, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number, with_cache
from apps.engine.reading.transcript import Draft, Transcript, with_call
from apps.engine.trace import ModelCall, StepKind, StepStatus, Usage

_SILENT: Final = frozenset({"snapshot", "patch"})
_ENDINGS: Final = {
    "completed": StepStatus.OK,
    "error": StepStatus.ERROR,
    "running": StepStatus.UNFINISHED,
    "pending": StepStatus.UNFINISHED,
}


class Answer:
    """Adds the steps of one assistant message to a transcript."""

    def __init__(self, made: Transcript, info: dict[str, Any]) -> None:
        self._made = made
        self._info = info
        self._open: int | None = None
        self._finished = 0
        self._said: list[str] = []
        self._thought: list[str] = []
        self._unread: Counter[str] = Counter()

    def take(self, parts: list[Any]) -> Counter[str]:
        """Add the steps of the parts; return how many of which kind were not read."""
        for part in parts:
            if isinstance(part, dict):
                self._take(part)
            else:
                self._unread["part that is no object"] += 1
        if not self._finished and (
            self._open is not None or not parts or self._failed()
        ):
            draft = self._call()
            self._end(draft, self._info.get("tokens"), self._info.get("finish"))
        self._close()
        if self._failed():
            self._fail()
        return self._unread

    def _take(self, part: dict[str, Any]) -> None:
        kind = kind_of(part)
        if kind == "step-start":
            self._close()
            self._call()
        elif kind in {"text", "reasoning"}:
            self._call()
            told = self._said if kind == "text" else self._thought
            told.extend(filter(None, [text_in(part, "text")]))
        elif kind == "tool":
            self._take_tool(part)
        elif kind == "step-finish":
            self._end(self._call(), part.get("tokens"), part.get("reason"))
            self._finished += 1
            self._close()
        elif kind == "retry":
            self._made.remarks.add(
                "Failed requests to the model that were tried again: {n}."
            )
        elif kind not in _SILENT:
            self._unread[str(kind)[:40]] += 1

    def _close(self) -> None:
        """End the step that is open, with what was said and thought in it."""
        if self._open is not None:
            draft = self._made.drafts[self._open]
            draft.output = "\n".join(self._said) or None
            draft.reasoning = "\n".join(self._thought) or None
        self._open = None
        self._said, self._thought = [], []

    def _call(self) -> Draft:
        if self._open is None:
            info, remarks = self._info, self._made.remarks
            model = clip(info.get("modelID"), NAME, remarks)
            self._open = self._made.add(
                Draft(
                    kind=StepKind.MODEL_CALL,
                    name=model,
                    start_ns=self._time("created"),
                    end_ns=self._time("completed"),
                    native_id=info.get("id"),
                    native_kind="assistant",
                    call=ModelCall(
                        provider=clip(info.get("providerID"), NAME, remarks),
                        model=model,
                        resets_context=info.get("summary") is True,
                    ),
                )
            )
        return self._made.drafts[self._open]

    def _time(self, key: str) -> int | None:
        times = self._info.get("time")
        return any_time_ns(times.get(key)) if isinstance(times, dict) else None

    def _end(self, draft: Draft, tokens: Any, reason: Any) -> None:
        finish, raw = finish_of(reason)
        with_call(
            draft,
            usage=_usage(tokens),
            finish=finish,
            finish_raw=clip(raw, IDENTIFIER, self._made.remarks),
        )

    def _failed(self) -> bool:
        return isinstance(self._info.get("error"), dict)

    def _fail(self) -> None:
        error, data = self._info["error"], self._info["error"].get("data")
        drafts = self._made.drafts
        last = next(one for one in reversed(drafts) if one.kind is StepKind.MODEL_CALL)
        last.status = StepStatus.ERROR
        last.error_type = error.get("name")
        last.error_message = data.get("message") if isinstance(data, dict) else None

    def _take_tool(self, part: dict[str, Any]) -> None:
        self._call()
        state = part.get("state")
        state = state if isinstance(state, dict) else {}
        draft = self._made.ask(
            name=part.get("tool"),
            call_id=part.get("callID"),
            arguments=state.get("input"),
            by=self._open,
        )
        status = state.get("status")
        draft.status = (
            _ENDINGS.get(status, StepStatus.UNSET)
            if isinstance(status, str)
            else StepStatus.UNSET
        )
        draft.output = state.get("output")
        draft.error_message = state.get("error")
        times = state.get("time")
        if isinstance(times, dict):
            draft.start_ns = any_time_ns(times.get("start"))
            draft.end_ns = any_time_ns(times.get("end"))


def _usage(tokens: Any) -> Usage:
    if not isinstance(tokens, dict):
        return usage_of(Counts())
    cache = mapping(tokens.get("cache"))
    read, written = whole_number(cache.get("read")), whole_number(cache.get("write"))
    return usage_of(
        Counts(
            input_total=with_cache(whole_number(tokens.get("input")), read, written),
            input_cached=read,
            input_cache_write=written,
            output_total=whole_number(tokens.get("output")),
            output_reasoning=whole_number(tokens.get("reasoning")),
            total=whole_number(tokens.get("total")),
            source="tokens.output",
        )
    )
