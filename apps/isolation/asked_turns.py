"""A conversation with a target that is asked anew for each turn, for memory tests.

What remembers is the history that is sent along, or the state that the target gives
back; so what is tried is the target with this history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from apps.engine.memory_tests import (
    ChatConversation,
    Conversation,
    Said,
    TrialRecord,
    TurnFailed,
    ran_of,
)
from apps.engine.replay.case import Case
from apps.engine.replay.run import UNKNOWN, Ending, Proof, Ran

Ask = Callable[[Case], Ran]
"""Runs the target on one case, as in a run of its own."""


class AskedTurns:
    """A target that is asked turn by turn; `case` is what stands before all turns."""

    def __init__(self, case: Case, ask: Ask) -> None:
        self._case = case
        self._ask = ask
        self._rans: list[Ran] = []

    def as_model(self) -> Conversation:
        """A model that is sent all messages each time, and can be asked for summaries."""
        return ChatConversation(self._of_messages, opening=list(self._case.messages))

    def as_agent(self) -> Conversation:
        """An agent that is sent what was said, and its own state, with each turn."""
        return _WithState(self._case, self.ask)

    def _of_messages(self, messages: list[dict[str, Any]]) -> Said:
        case = msgspec.structs.replace(self._case, input=None, messages=tuple(messages))
        ran = self.ask(case)
        return Said(answer=ran.output, handed=messages, events=ran.events)

    def ask(self, case: Case) -> Ran:
        """What the target answers; raises `TurnFailed`."""
        ran = self._ask(case)
        self._rans.append(ran)
        if ran.error is not None:
            raise TurnFailed(ran.error, ran.events)
        return ran

    def ran(self, record: TrialRecord) -> Ran:
        """The whole trial as one attempt; without a turn it is one of nothing."""
        if not self._rans:
            return ran_of(record, Proof(level=UNKNOWN))
        whole = ran_of(record, _proof_of([one.proof for one in self._rans]))
        return msgspec.structs.replace(
            whole,
            ending=whole.ending if whole.error is None else self._ending(whole),
            effects=tuple(one for ran in self._rans for one in ran.effects),
            printed="".join(ran.printed for ran in self._rans),
            start_ns=self._rans[0].start_ns,
            end_ns=self._rans[-1].end_ns,
        )

    def _ending(self, whole: Ran) -> Ending:
        last = self._rans[-1].ending
        return whole.ending if last is Ending.FINISHED else last


def _proof_of(turns: Sequence[Proof]) -> Proof:
    """The proof of all turns: what they counted is added up.

    The hashes of the input are those of the first turn that changed its own, else of
    the last one; a recording is left over where no turn asked for it.
    """
    changed = (one for one in turns if one.input_after not in {"", one.input_before})
    shown = next(changed, turns[-1])
    left = set.intersection(*[set(one.unconsumed) for one in turns])
    return msgspec.structs.replace(
        turns[-1],
        input_before=shown.input_before,
        input_after=shown.input_after,
        state_copy=turns[0].state_copy,
        real_calls=sum(one.real_calls for one in turns),
        stubbed_calls=sum(one.stubbed_calls for one in turns),
        missed_calls=sum(one.missed_calls for one in turns),
        unconsumed=tuple(sorted(left)),
        intended_writes=sum(one.intended_writes for one in turns),
    )


class _WithState:
    """An agent that is sent what was said and its own state with each turn."""

    def __init__(self, case: Case, ask: Ask) -> None:
        self._case = case
        self._ask = ask
        self.restart()

    def restart(self) -> None:
        self._said = list(self._case.messages)
        self._state = self._case.state

    def state(self) -> Any:
        return self._state

    def turn(self, text: str) -> Said:
        asked = [*self._said, {"role": "user", "content": text}]
        case = msgspec.structs.replace(
            self._case, input=text, messages=tuple(asked), state=self._state
        )
        ran = self._ask(case)
        answer = ran.output
        told = (
            answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        )
        self._said = [*asked, {"role": "assistant", "content": told}]
        self._state = ran.state if ran.state is not None else self._state
        return Said(answer=answer, events=ran.events)
