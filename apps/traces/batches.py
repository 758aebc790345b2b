"""What a reader has found and not written yet: a batch of traces, and the receipt."""

from __future__ import annotations

from collections import Counter

import msgspec

from apps.engine.format import Note, Progress, Rejected
from apps.engine.trace import Trace as EngineTrace

MAX_REJECTED_KEPT = 100
COPY_BATCH_STEPS = 4_000
COPY_BATCH_TRACES = 1_000


class Batch(msgspec.Struct):
    """What a reader found since its last write."""

    traces: list[tuple[int, EngineTrace]] = []
    rejected: list[Rejected] = []
    progress: Progress | None = None
    steps: int = 0

    def add_trace(self, ordinal: int, trace: EngineTrace) -> None:
        """Take a trace with its place in the upload."""
        self.traces.append((ordinal, trace))
        self.steps += len(trace.steps)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return self.steps >= COPY_BATCH_STEPS or len(self.traces) >= COPY_BATCH_TRACES


class Receipt(msgspec.Struct):
    """What the whole reading had to say besides its traces, bounded in memory."""

    rejected: list[Rejected] = []
    rejected_count: int = 0
    note_counts: Counter[str] = msgspec.field(default_factory=Counter)
    sentences: dict[str, str] = {}

    def reject(self, item: Rejected) -> None:
        """Count a rejected record; the first 100 are kept with their text."""
        self.rejected_count += 1
        if len(self.rejected) < MAX_REJECTED_KEPT:
            self.rejected.append(item)

    def note(self, note: Note) -> None:
        """Count a note; the first sentence of each code is the one that shows."""
        self.note_counts[note.code] += note.count
        self.sentences.setdefault(note.code, note.sentence)
