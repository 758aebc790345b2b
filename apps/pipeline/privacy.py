"""What a project's privacy settings do to what arrives, before it is stored.

Redaction replaces secrets in bodies; structure only drops bodies, for files already in
the process that received them. Checks run on what is left. Neither changes what was
stored before the setting was switched on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate
from typing import Any, overload

import msgspec
from django.conf import settings
from django.utils.crypto import salted_hmac
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from apps.accounts.models import Project
from apps.engine.format import Item, Note, Opened, Rejected, UnreadableTrace
from apps.engine.formats import TooLarge, read_file
from apps.engine.formats.evalsite_writer import dump
from apps.engine.privacy.exports import structure_of_export
from apps.engine.privacy.redaction import Redactor
from apps.engine.privacy.structure import (
    SENTENCE,
    structure_of,
    wordless,
    wordless_note,
)
from apps.engine.root_input import root_input_hash
from apps.engine.trace import Trace
from apps.pipeline.refusals import NothingKept
from apps.traces.batches import Receipt
from apps.traces.storage import (
    Keeping,
    ReceivedFile,
    Receiver,
    keeping_of,
    kept_as,
    size_in_words,
)
from apps.traces.storage import (
    TooLarge as TooLargeToStore,
)


class Privacy:
    """What one project keeps of the traces that are read now, with counts by rule."""

    def __init__(self, *, redacts: bool, structure_only: bool) -> None:
        self._redacts = redacts
        self._structure_only = structure_only
        self._redactor = Redactor()

    @classmethod
    def of(cls, project: Project) -> Privacy:
        """The settings of a project as they are now."""
        return cls(
            redacts=project.redact_secrets, structure_only=project.structure_only
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many secrets were replaced so far, by rule slug."""
        return dict(self._redactor.counts)

    def keep(self, trace: Trace) -> Trace:
        """What is kept of a trace: all of it, without secrets, or its structure."""
        if self._structure_only:
            return structure_of(trace)
        return self._redactor.trace(trace) if self._redacts else trace

    def input_hash(self, *, of: Trace, kept: Trace) -> str | None:
        """By what trials of one task are found, without saying what was replaced.

        Two inputs with the same marks may differ in what stood there. So the hash is
        that of the input as it came, made with the site's own key where it is not kept.
        """
        digest = root_input_hash(kept)
        if digest is None or kept is of:
            return digest
        exact = root_input_hash(of)
        if exact is None or exact == digest:
            return exact
        keyed = salted_hmac("evalsite.root_input", exact, algorithm="sha256")
        return keyed.hexdigest()[: len(exact)]

    @overload
    def keep_words(self, item: Rejected) -> Rejected: ...
    @overload
    def keep_words(self, item: Note) -> Note: ...
    def keep_words(self, item: Rejected | Note) -> Rejected | Note:
        """What is kept of a rejected record or a note: no secret, or no value at all."""
        if isinstance(item, Note):
            return self._note(item)
        if self._structure_only:
            return wordless(item)
        if not self._redacts:
            return item
        text = self._redactor.text
        return Rejected(item.place, text(item.reason), text(item.excerpt))

    def keep_sentence(self, sentence: str) -> str:
        """What is kept of a sentence about a file as a whole."""
        return self.keep_words(Note(code="", sentence=sentence)).sentence

    def _note(self, note: Note) -> Note:
        if self._structure_only:
            return wordless_note(note)
        if not self._redacts:
            return note
        return msgspec.structs.replace(
            note, sentence=self._redactor.text(note.sentence)
        )


def reduced_export(
    project: Project, request: ExportTraceServiceRequest
) -> ExportTraceServiceRequest:
    """What this project may store of a live request; call it before anything else."""
    return structure_of_export(request) if project.structure_only else request


def settled(
    received: ReceivedFile, *, project: Project, format_override: str = ""
) -> ReceivedFile:
    """Received bytes as this project keeps them, whatever they were received as.

    Of a structure-only project they are read here and now, and only their structure
    comes back. Raises `NothingKept` when that is not possible; the bytes are gone then.
    """
    if project.structure_only:
        with received.open() as plain:
            try:
                return _Reduction(received, project).of(
                    read_file(
                        plain,
                        name=received.name,
                        format_override=format_override,
                        max_unpacked_bytes=settings.MAX_STRUCTURE_BYTES,
                    )
                )
            finally:
                received.drop()
    return kept_as(received, keeping_of(project))


class _Reduction:
    """Reads one file and writes its structure as Evalsite's own JSON lines."""

    def __init__(self, received: ReceivedFile, project: Project) -> None:
        self._received = received
        self._receipt = Receipt()
        self._opened: Opened | None = None
        self._runs: list[list[Any]] = []
        self._count = 0
        self._writer = Receiver(
            limit=settings.MAX_UPLOAD_BYTES,
            name=received.name,
            keeping=_keeping_of_structure(project),
        )

    def of(self, items: Iterator[Item]) -> ReceivedFile:
        """The structure of what `items` yields."""
        try:
            failure = self._read(items)
        except BaseException:
            self._writer.drop()
            raise
        if not self._count:
            self._writer.drop()
            raise NothingKept(
                f"{failure or self._first_reason()} This project keeps structure only, "
                "so nothing of the file was kept."
            )
        if failure:
            self._receipt.reject(wordless(Rejected("the rest of the file", failure)))
        made = self._writer.finish()
        return msgspec.structs.replace(
            made,
            sha256=self._received.sha256,
            size=self._received.size,
            stored_sha256=made.sha256,
            reduced=self._said(),
        )

    def _read(self, items: Iterator[Item]) -> str:
        """Write what can be read; returns why the rest could not, else nothing."""
        try:
            with closing(items):  # type: ignore[type-var] # a generator, which closes
                for item in items:
                    self._take(item)
        except (TooLarge, TooLargeToStore) as error:
            self._count = 0
            return (
                f"{error} In a project that keeps structure only a file may hold "
                f"{size_in_words(settings.MAX_STRUCTURE_BYTES)}; strip it with "
                "strip_trace.py first, or send it in parts."
            )
        except UnreadableTrace as error:
            return str(error)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001
            return (
                "Evalsite's reader broke on this file "
                f"({type(error).__name__}). That is our fault."
            )
        return ""

    def _take(self, item: Item) -> None:
        if isinstance(item, Trace):
            self._writer.take(dump(structure_of(item)))
            self._count += 1
            self._count_reader()
        elif isinstance(item, Rejected):
            self._receipt.reject(wordless(item))
        elif isinstance(item, Note):
            self._receipt.note(wordless_note(item))
        elif isinstance(item, Opened):
            self._opened = item
            self._receipt.read_by(item, files=1)

    def _count_reader(self) -> None:
        """Remember who read this trace: runs of traces of one reader, in order."""
        if self._opened is None:
            raise ValueError("A trace came before the name of its reader.")
        self._receipt.read_by(self._opened, traces=1)
        reader = [self._opened.format, self._opened.version]
        if not self._runs or self._runs[-1][:2] != reader:
            self._runs.append([*reader, 0])
        self._runs[-1][2] += 1

    def _first_reason(self) -> str:
        if self._receipt.rejected:
            first = self._receipt.rejected[0]
            return f"No record could be read. The first, {first.place}: {first.reason}"
        return "There is no trace in this file."

    def _said(self) -> dict[str, Any]:
        """What was read of the bytes that came, for the receipt."""
        receipt = self._receipt
        return {
            "readers": receipt.readers_seen(),
            "runs": self._runs,
            "rejected_count": receipt.rejected_count,
            "rejected": [
                {"place": one.place, "reason": one.reason} for one in receipt.rejected
            ],
            "notes": receipt.notes(),
        }


class Origins:
    """Who read the traces of a file of which only the structure is kept."""

    def __init__(self, reduced: dict[str, Any] | None) -> None:
        self._runs = (reduced or {}).get("runs", [])
        self._ends = list(accumulate(count for _, _, count in self._runs))

    def __bool__(self) -> bool:
        return bool(self._runs)

    def of(self, ordinal: int) -> Opened | None:
        """The reader of the trace at this place, or None where nothing says."""
        place = bisect_right(self._ends, ordinal)
        if place == len(self._ends):
            return None
        slug, version, _ = self._runs[place]
        return Opened("", slug, version)


def _keeping_of_structure(project: Project) -> Keeping:
    """How the structure may lie: as the project's files would if it kept bodies."""
    open_project = Project(slug=project.slug, raw_bytes=project.raw_bytes)
    return keeping_of(open_project)


def add_to_receipt(reduced: dict[str, Any], receipt: Receipt) -> None:
    """Repeat in a receipt what was said when the structure was taken."""
    receipt.note(Note(code="structure_only", sentence=SENTENCE))
    for one in reduced.get("readers", ()):
        receipt.read_by(Opened("", one["format"], one["version"]), files=one["files"])
    for note in reduced["notes"]:
        receipt.note(Note(note["code"], note["sentence"], note["count"]))
    for item in reduced["rejected"]:
        receipt.reject(Rejected(item["place"], item["reason"]))
    receipt.rejected_count += reduced["rejected_count"] - len(reduced["rejected"])
