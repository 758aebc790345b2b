"""What a reader has found and not written yet: a batch of traces, and the receipt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from apps.engine.format import Note, Opened, Progress, Rejected
from apps.engine.trace import Trace as EngineTrace
from apps.traces.trace_notes import TraceNotes

MAX_REJECTED_KEPT = 100
COPY_BATCH_STEPS = 4_000
COPY_BATCH_TRACES = 1_000


class Batch(msgspec.Struct):
    """What a reader found since its last write."""

    traces: list[tuple[int, EngineTrace]] = []
    readers: dict[int, Opened] = {}
    input_hashes: dict[int, str | None] = {}
    rejected: list[Rejected] = []
    progress: Progress | None = None
    steps: int = 0

    def add_trace(
        self,
        ordinal: int,
        trace: EngineTrace,
        opened: Opened,
        input_hash: str | None = None,
    ) -> None:
        """Take a trace: its place in the upload, its reader, the hash of its input."""
        self.input_hashes[ordinal] = input_hash
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
    trace_notes: TraceNotes = msgspec.field(default_factory=TraceNotes)
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

    def notes(self) -> list[dict[str, Any]]:
        """All notes as an upload keeps them: of the file, then of its traces."""
        of_file = [
            {"code": code, "sentence": self.sentences[code], "count": count}
            for code, count in self.note_counts.items()
        ]
        return of_file + self.trace_notes.all()
