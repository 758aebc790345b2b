"""Reader of logs of Inspect AI: one JSON file, or the files of an .eval archive.

A sample is a trace, its epoch the trial. An .eval file is a zip file with one file for
each sample; one that was not finished has no header, only what it began with.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from typing import Any, BinaryIO, Final, cast

from apps.engine.format import (
    Folder,
    Item,
    Note,
    Rejected,
    Source,
    UnreadableTrace,
)
from apps.engine.privacy.sealed import scratch_file
from apps.engine.reading.archive import open_archive
from apps.engine.reading.bytestream import MAX_UNPACKED_BYTES
from apps.engine.reading.group_files import GroupFiles, has_name, names_below, placed
from apps.engine.reading.inspect_ai.samples import (
    Log,
    is_log,
    is_sample,
    trace_of_sample,
)
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.members import looks_like_zip
from apps.engine.reading.unpack import Meter, TooLarge

_SAMPLE: Final = re.compile(r"(.*/|)samples/[^/]+\.json")
_HEADER: Final = "header.json"
_START: Final = "_journal/start.json"
_BESIDE: Final = re.compile(
    r"header\.json|summaries\.json|reductions\.json|results\.json|"
    r"_journal/.*|samples/[^/]+\.json"
)
_NO_SAMPLES: Final = "The log holds no samples: it is only the header of an evaluation."
_ZIP_HEAD: Final = 512
_NO_LOG: Final = "It holds no log of Inspect: neither a header nor a beginning of one."
_UNFINISHED: Final = (
    "The log has no header, so its evaluation did not finish; the samples that were "
    "written until then are read."
)


class InspectLog:
    """The format `inspect-log`."""

    slug = "inspect-log"
    label = "Inspect AI log (JSON)"
    version = 1
    description = (
        "A log of an Inspect evaluation as JSON, or one sample of it. Each sample is a "
        "trace, each epoch a trial, and the scores are the outcome."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins like a log or like a sample."""
        record = first_record(source)
        return is_log(record) or is_sample(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each sample; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True), nothing=_NO_SAMPLES
        )


class InspectEval:
    """The format `inspect-eval`."""

    slug = "inspect-eval"
    label = "Inspect AI log (.eval)"
    version = 1
    description = (
        "An .eval file of Inspect, which is a zip file with one file for each sample, "
        "finished or not."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield the files of each log, the header or the beginning first."""
        for name in folder.names:
            if name.rsplit("/", 1)[-1] != _HEADER and not name.endswith(_START):
                continue
            is_header = not name.endswith(_START)
            root = name.removesuffix(_HEADER if is_header else _START)
            if root and not root.endswith("/"):
                continue
            if not is_header and has_name(folder.names, root + _HEADER):
                continue
            if not is_header or is_log(first_record(folder.source(name))):
                yield (
                    name,
                    *[
                        one
                        for one in names_below(folder.names, root)
                        if _belongs(one, root, name)
                    ],
                )

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield one trace for each sample; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _samples(folder, names),
            nothing="The log was begun, but holds no sample that was finished.",
        )


def _belongs(name: str, root: str, header: str) -> bool:
    return name != header and _BESIDE.fullmatch(name, len(root)) is not None


def _traces(record: Record) -> Iterator[Item]:
    value: Any = record.value
    if is_sample(value):
        yield trace_of_sample(value, Log({}))
        return
    if not is_log(value):
        raise RefusedRecord("This is not a log of Inspect: it has no eval.task.", "$")
    samples = value.get("samples")
    if samples is None:
        raise RefusedRecord(_NO_SAMPLES, "$.samples")
    if not isinstance(samples, list):
        raise RefusedRecord("The samples of a log are a list.", "$.samples")
    log = Log(value)
    for index, sample in enumerate(samples):
        try:
            yield trace_of_sample(sample, log)
        except RefusedRecord as refusal:
            path = f"$.samples[{index}]{refusal.path.removeprefix('$')}"
            yield Rejected(f"{record.place}, {path}", refusal.reason)


def _samples(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    files = GroupFiles(folder)
    kept: dict[str, dict[str, Any]] = {}
    yield from files.keep(names[0], kept)
    log = Log(next(iter(kept.values()), {}))

    def trace(record: Record) -> Iterator[Item]:
        yield trace_of_sample(record.value, log)

    for name in names[1:]:
        if _SAMPLE.fullmatch(name):
            yield from files.read(name, trace, unroll=False)
    if names[0].endswith(_START):
        yield Note("inspect_unfinished", _UNFINISHED)


class InspectLogs:
    """The format `inspect-logs`: several .eval files in one archive."""

    slug = "inspect-logs"
    label = "Inspect AI logs (.eval files in an archive)"
    version = 1
    description = (
        "A folder of .eval files, packed as one archive. All of them together may "
        "unpack to as much as one upload may."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield all .eval files as one group, so that they share one limit."""
        names = tuple(
            name
            for name in folder.names
            if name.endswith(".eval") and _begins_like_zip(folder, name)
        )
        if names:
            yield names

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield the traces of all logs; raises `TooLarge` beyond the limit."""
        return demand_a_trace(
            _logs(folder, names), nothing="The .eval files hold no sample."
        )


def _begins_like_zip(folder: Folder, name: str) -> bool:
    with folder.open(name) as stream:
        return looks_like_zip(stream.read(_ZIP_HEAD))


def _logs(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    meter = Meter(MAX_UNPACKED_BYTES)
    for name in names:
        with closing(scratch_file()) as copy:
            with folder.open(name) as stream:
                shutil.copyfileobj(stream, copy)
            copy.seek(0)
            for item in _log(cast("BinaryIO", copy), meter):
                yield placed(name, item)


def _log(file: BinaryIO, meter: Meter) -> Iterator[Item]:
    archive = open_archive(file, meter)
    reader = InspectEval()
    found = False
    for names in reader.groups(archive):
        found = True
        try:
            yield from reader.read_group(archive, names)
        except TooLarge:
            raise
        except UnreadableTrace as refusal:
            yield Rejected(names[0], str(refusal))
    if not found:
        yield Rejected("this archive", _NO_LOG)
    yield from archive.found()
    yield from archive.notes
