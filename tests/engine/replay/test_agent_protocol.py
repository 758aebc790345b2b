"""What an agent tells of its calls, beside what the stubs saw."""

from __future__ import annotations

import time

from apps.engine.replay.agent_protocol import together
from apps.engine.replay.run import AnswerSource, ToolAnswer, ToolCalled


def called(tool: str, arguments: object, note: str = "") -> ToolCalled:
    answer = ToolAnswer(source=AnswerSource.MISS, note=note)
    return ToolCalled(tool=tool, arguments=arguments, answer=answer)


def test_long_arguments_of_many_calls_are_put_together_in_time():
    long = {"text": ["word"] * 5_000}
    told = [called("find", {**long, "number": one}) for one in range(300)]
    seen = [called("find", {**long, "number": -one}, "seen") for one in range(100)]
    began = time.perf_counter()
    events, unseen = together(told, seen)
    assert time.perf_counter() - began < 10
    assert (len(events), len(unseen)) == (399, 299)
    assert events[0].answer.note == "seen"
