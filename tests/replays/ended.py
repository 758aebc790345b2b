"""How runs end: finished with a decision, failed, with effects, as the engine has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.engine.replay.run import (
    AnswerSource,
    Effect,
    EffectKind,
    Ending,
    ErrorKind,
    Message,
    ModelCalled,
    Proof,
    Ran,
    Regime,
    RegimeKind,
    RunError,
    ToolAnswer,
    ToolCalled,
)
from apps.engine.trace import FinishReason, Usage, UsageState
from tests.factories import SECOND, START

HASH = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
CHANGED = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
SAMPLING = Regime(kind=RegimeKind.SAMPLING, temperature=0.7)
PROOF = Proof(
    level="landlock_seccomp",
    wall=("Landlock: files outside of its folder", "seccomp: sockets and processes"),
    not_walled=("memory of the machine is shared",),
    input_before=HASH,
    input_after=HASH,
    state_copy=HASH,
    stubbed_calls=1,
    versions={"evalsite": "0.5.0", "python": "3.11"},
)
WROTE = Effect(kind=EffectKind.FILE_WRITE, what="/etc/notes.txt", after=2)
LOOKED = Effect(
    kind=EffectKind.NAME_LOOKUP, what="metrics.example", after=1, is_breach=False
)
RATE_LIMITED = RunError(
    kind=ErrorKind.RATE_LIMITED, sentence="The target asks to wait.", retry_after=12.0
)


def usage(given: int, back: int) -> Usage:
    return Usage(
        state=UsageState.REPORTED, input_total=given, output_total=back, total=given
    )


def asked(output: Any, place: int, **more: Any) -> ModelCalled:
    return ModelCalled(
        request={"messages": [{"role": "user", "content": "Is order 7 open?"}]},
        output=output,
        model="small",
        provider="models.example",
        usage=usage(120 + place, 8),
        finish=FinishReason.STOP,
        temperature=0.0,
        start_ns=START + place * SECOND,
        end_ns=START + place * SECOND + SECOND // 2,
        **more,
    )


def called(source: AnswerSource = AnswerSource.RECORDED, **more: Any) -> ToolCalled:
    answer = {
        AnswerSource.RECORDED: ToolAnswer(source=source, result="open", matched=0),
        AnswerSource.STATIC: ToolAnswer(source=source, result="ok", writes=True),
        AnswerSource.HANDLER: ToolAnswer(source=source, result={"sum": 3}),
        AnswerSource.MISS: ToolAnswer(
            source=source,
            error="No recording has these arguments.",
            note="The nearest recording differs in “number”.",
        ),
    }[source]
    fields = {"tool": "lookup", "arguments": {"number": 7}, "call_id": "c1", **more}
    return ToolCalled(
        answer=answer, start_ns=START + SECOND, end_ns=START + SECOND, **fields
    )


def decided(decision: Any, *, events: Sequence[Any] = (), **more: Any) -> Ran:
    """A run that finished with this decision."""
    made = more.pop("proof", PROOF)
    return Ran(
        ending=Ending.FINISHED,
        output=decision,
        events=(
            Message(role="user", content="Is order 7 open?"),
            asked(None, 1, call_ids=("c1",)),
            called(),
            *events,
            asked(decision, 5),
        ),
        proof=made,
        start_ns=START,
        end_ns=START + 6 * SECOND,
        **more,
    )


def failed(
    kind: ErrorKind = ErrorKind.CRASHED,
    sentence: str = "The agent ended with an error: KeyError 'order'.",
    ending: Ending = Ending.FAILED,
    **more: Any,
) -> Ran:
    """A run that did not finish."""
    return Ran(
        ending=ending,
        error=RunError(kind=kind, sentence=sentence),
        events=(Message(role="user", content="Is order 7 open?"),),
        proof=PROOF,
        start_ns=START,
        end_ns=START + SECOND,
        **more,
    )
