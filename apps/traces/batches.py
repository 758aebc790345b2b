"""What a reader has found and not written yet: a batch of traces, and the receipt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from apps.engine.format import Note, Opened, Progress, Rejected
from apps.engine.trace import Trace as EngineTrace

MAX_REJECTED_KEPT = 100
COPY_BATCH_STEPS = 4_000
COPY_BATCH_TRACES = 1_000


class Batch(msgspec.Struct):
    """What a reader found since its last write."""

    traces: list[tuple[int, EngineTrace]] = []
    readers: dict[int, Opened] = {}
    rejected: list[Rejected] = []
    progress: Progress | None = None
    steps: int = 0

    def add_trace(self, ordinal: int, trace: EngineTrace, opened: Opened) -> None:
        """Take a trace with its place in the upload and the reader that found it."""
        self.traces.append((ordinal, trace))
        self.readers[ordinal] = opened
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
    redactions: dict[str, int] = {}
    readers: dict[tuple[str, int], list[int]] = {}

    def reject(self, item: Rejected) -> None:
        """Count a rejected record; the first 100 are kept with their text."""
        self.rejected_count += 1
        if len(self.rejected) < MAX_REJECTED_KEPT:
            self.rejected.append(item)

    def read_by(self, opened: Opened, *, traces: int = 0, files: int = 0) -> None:
        """Count files and traces of a reader and version."""
        seen = self.readers.setdefault((opened.format, opened.version), [0, 0])
        seen[0] += files
        seen[1] += traces

    def readers_seen(self) -> list[dict[str, Any]]:
        """Which readers found traces: format, version, files and traces of each."""
        return [
            {"format": slug, "version": version, "files": files, "traces": traces}
            for (slug, version), (files, traces) in self.readers.items()
            if traces
        ]

    def note(self, note: Note) -> None:
        """Count a note; the first sentence of each code is the one that shows."""
        self.note_counts[note.code] += note.count
        self.sentences.setdefault(note.code, note.sentence)
