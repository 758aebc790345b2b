"""Of which replay a trace or task is, for the pages that show recorded ones too."""

from __future__ import annotations

from typing import Final

import msgspec

from apps.replays.batch_queries import group_of_task, is_memory, run_of_trace
from apps.replays.models import Batch, Group, Run
from apps.traces.models import Task, Trace
from apps.web.pages.replay_words import RUN_WORDS, regime_words

NOT_HERE: Final = "What was run alone is not moved, renamed or noted on."
NOT_CHECKED: Final = (
    "Checks do not run over replays: how often chance alone gives a shape is counted "
    "over what was recorded."
)


class ReplayPlace(msgspec.Struct, frozen=True):
    """The run whose recording a trace is, or the group whose runs are a task's trials.

    Both are `None` for what is left of a batch that is gone.
    """

    group: Group | None
    run: Run | None = None
    regime: str = ""
    ending: str = ""
    not_checked: str = NOT_CHECKED

    @property
    def batch(self) -> Batch | None:
        """The batch that it is of."""
        return self.group.batch if self.group else None

    @property
    def is_memory(self) -> bool:
        """Whether it is of a memory test, which is judged by its facts."""
        return self.batch is not None and is_memory(self.batch)


def replay_of_trace(trace: Trace) -> ReplayPlace | None:
    """The replay that a trace is the recording of; `None` for a recorded one. One query."""
    if not trace.is_replay:
        return None
    run = run_of_trace(trace.pk)
    if run is None:
        return ReplayPlace(None)
    regime = regime_words(run.group.regime)
    return ReplayPlace(run.group, run, regime, RUN_WORDS[run.state].word)


def replay_of_task(task: Task) -> ReplayPlace | None:
    """The group that a task stands for; `None` for a recorded task. One query."""
    if not task.is_replay:
        return None
    group = group_of_task(task.pk)
    return ReplayPlace(group, regime=regime_words(group.regime) if group else "")
