"""The formats that can be read, most specific first, and how a file is opened.

Adding a format is one module with a reader and one entry in `FORMATS`.
"""

from __future__ import annotations

from typing import Final

from apps.engine.format import Format, Source
from apps.engine.formats.evalsite_jsonl import EvalsiteJsonl
from apps.engine.formats.openai_chat import OpenAIChat
from apps.engine.formats.otlp import OtlpJson
from apps.engine.formats.otlp_protobuf import OtlpProtobuf
from apps.engine.formats.tau_bench import TauBench
from apps.engine.formats.unknown import why_unknown
from apps.engine.reading.bytestream import MAX_UNPACKED_BYTES, open_source
from apps.engine.reading.unpack import TooLarge

__all__ = [
    "FORMATS",
    "MAX_UNPACKED_BYTES",
    "TooLarge",
    "by_slug",
    "detect",
    "open_source",
    "why_unknown",
]

FORMATS: Final[tuple[Format, ...]] = (
    EvalsiteJsonl(),
    OtlpProtobuf(),
    OtlpJson(),
    TauBench(),
    OpenAIChat(),
)


def by_slug(slug: str) -> Format:
    """Return the format with this slug; raise `KeyError` when there is none."""
    for one in FORMATS:
        if one.slug == slug:
            return one
    raise KeyError(slug)


def detect(source: Source) -> Format | None:
    """Return the first format that recognises the content, or `None`.

    Only the head is looked at; `why_unknown(source)` has the sentence for `None`.
    """
    return next((one for one in FORMATS if one.recognises(source)), None)
