"""Archives made by the standard library, and a folder format for tests."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import zstandard

from apps.engine.format import Folder, Item, Opened
from apps.engine.formats import read_file
from apps.engine.reading.json_gate import records
from apps.engine.reading.json_peek import first_values
from apps.engine.trace import Trace


def zip_of(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these files, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def zstd_zip_of(name: str, data: bytes) -> bytes:
    """A zip whose one member is packed with method 93, as Inspect AI writes them."""
    packed = zstandard.compress(data)
    return hand_made_zip([(name.encode(), packed, data, {"method": 93})])


def hand_made_zip(
    members: list[tuple[bytes, bytes, bytes, dict[str, int]]], comment: bytes = b""
) -> bytes:
    """A zip written field by field: (name, packed bytes, unpacked bytes, changes).

    `changes` overrides method, flags, size, packed, crc or start in the directory.
    """
    body, directory = b"", b""
    for name, packed, data, changes in members:
        said = {"method": 0, "flags": 0, "crc": zlib.crc32(data), "packed": len(packed),
                "size": len(data), "start": len(body), **changes}  # fmt: skip
        same = (said["flags"], said["method"], 0, 0, said["crc"], said["packed"],
                said["size"], len(name), 0)  # fmt: skip
        body += struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, *same) + name + packed
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", 20, 20, *same, 0, 0, 0, 0, said["start"]
        ) + name  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(members), len(members),
                      len(directory), len(body), len(comment))  # fmt: skip
    return body + directory + end + comment


def tar_of(
    files: Mapping[str, bytes], mode: Any = "w", form: int = tarfile.PAX_FORMAT
) -> bytes:
    """A tar of these files, in this order; `mode` as in `tarfile.open`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def archive_items(data: bytes, **options: Any) -> list[Item]:
    """All that is read from an archive."""
    return list(read_file(io.BytesIO(data), **options))


def members_of(items: list[Item]) -> dict[str, int]:
    """How many traces came from each member that was opened."""
    counts: dict[str, int] = {}
    member = ""
    for item in items:
        if isinstance(item, Opened):
            member = item.member
            counts.setdefault(member, 0)
        elif isinstance(item, Trace):
            counts[member] += 1
    return counts


class RunFolders:
    """A folder format: run.json with what its parts say, as one trace."""

    slug = "run-folder"
    label = "Run folder"
    version = 3
    description = "For tests."

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        for name in folder.names:
            if name.endswith("run.json") and first_values(folder.source(name)):
                root = name.removesuffix("run.json")
                parts = (n for n in folder.names if n.startswith(f"{root}parts/"))
                yield (name, *parts)

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        said = []
        for name in names:
            for record in records(folder.source(name), unroll=True):
                value = getattr(record, "value", None)
                if value is None:
                    yield record
                else:
                    said.append(value["say"])
        yield Trace(name=" ".join(said), steps=(), invocations=())
