"""The formats that can be read, most specific first, and how a file is opened.

Adding a format is one module with a reader and one entry in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from apps.engine.format import FolderFormat, Format, Item, Source
from apps.engine.formats.anthropic import Anthropic
from apps.engine.formats.any_agent import AnyAgent
from apps.engine.formats.atif import Atif
from apps.engine.formats.autogen import AutoGen
from apps.engine.formats.claude_code import ClaudeCode, ClaudeCodeFolder, ClaudeStream
from apps.engine.formats.codex import CodexRollout
from apps.engine.formats.codex_exec import CodexExec
from apps.engine.formats.crewai import CrewAI
from apps.engine.formats.deepeval import DeepEval
from apps.engine.formats.evalsite_jsonl import EvalsiteJsonl
from apps.engine.formats.gemini_cli import GeminiCLI
from apps.engine.formats.google_adk import GoogleADK
from apps.engine.formats.gptme import Gptme
from apps.engine.formats.grok_build import GrokBuild
from apps.engine.formats.harbor import HarborTrial
from apps.engine.formats.iflow import IFlow
from apps.engine.formats.inspect_ai import InspectEval, InspectLog, InspectLogs
from apps.engine.formats.langchain import LangChain
from apps.engine.formats.langfuse import Langfuse
from apps.engine.formats.langsmith import LangSmith
from apps.engine.formats.mini_swe_agent import MiniSWEAgent
from apps.engine.formats.mistral_vibe import MistralVibe
from apps.engine.formats.mlflow import MLflow
from apps.engine.formats.openai_agents import OpenAIAgents
from apps.engine.formats.openai_chat import OpenAIChat
from apps.engine.formats.openai_responses import OpenAIResponses
from apps.engine.formats.openclaw import OpenClaw
from apps.engine.formats.opencode import OpenCode
from apps.engine.formats.openhands import OpenHands, OpenHandsFolder
from apps.engine.formats.opik import Opik
from apps.engine.formats.otel_console import OtelConsole
from apps.engine.formats.otlp import OtlpJson
from apps.engine.formats.otlp_protobuf import OtlpProtobuf
from apps.engine.formats.phoenix import Phoenix
from apps.engine.formats.phoenix_parquet import PhoenixParquet
from apps.engine.formats.pi import Pi
from apps.engine.formats.pydantic_ai import PydanticAI
from apps.engine.formats.request_log import RequestLog
from apps.engine.formats.smolagents import Smolagents
from apps.engine.formats.swe_agent import SWEAgent
from apps.engine.formats.tau2 import Tau2, Tau2Folder
from apps.engine.formats.tau_bench import TauBench
from apps.engine.formats.trail import Trail
from apps.engine.formats.trulens import TruLens
from apps.engine.formats.unknown import why_unknown
from apps.engine.formats.vercel_ai import VercelAI
from apps.engine.formats.who_and_when import WhoAndWhen
from apps.engine.reading.archive import open_folder
from apps.engine.reading.bytestream import MAX_UNPACKED_BYTES, open_source
from apps.engine.reading.files import Readers, read_members, read_with
from apps.engine.reading.unpack import Meter, TooLarge

__all__ = [
    "ARCHIVE",
    "FOLDER_FORMATS",
    "FORMATS",
    "MAX_UNPACKED_BYTES",
    "TooLarge",
    "by_slug",
    "detect",
    "labels",
    "open_source",
    "read_file",
    "read_folder",
    "versions",
    "why_unknown",
]

# What is written down as the format of an archive whose members have several.
ARCHIVE: Final = "archive"

FORMATS: Final[tuple[Format, ...]] = (
    EvalsiteJsonl(),
    OtlpProtobuf(),
    OtlpJson(),
    MLflow(),
    Trail(),
    Phoenix(),
    PhoenixParquet(),
    OtelConsole(),
    AnyAgent(),
    TruLens(),
    ClaudeStream(),
    IFlow(),
    ClaudeCode(),
    CodexRollout(),
    CodexExec(),
    Pi(),
    OpenClaw(),
    GrokBuild(),
    GeminiCLI(),
    OpenCode(),
    OpenAIAgents(),
    Langfuse(),
    LangSmith(),
    Opik(),
    DeepEval(),
    InspectLog(),
    Atif(),
    Tau2(),
    OpenHands(),
    TauBench(),
    SWEAgent(),
    MiniSWEAgent(),
    AutoGen(),
    CrewAI(),
    Smolagents(),
    WhoAndWhen(),
    LangChain(),
    PydanticAI(),
    VercelAI(),
    GoogleADK(),
    OpenAIResponses(),
    Anthropic(),
    RequestLog(),
    Gptme(),
    MistralVibe(),
    OpenAIChat(),
)

# Readers of files that belong together, in the order in which they claim them.
FOLDER_FORMATS: Final[tuple[FolderFormat, ...]] = (
    # A Harbor trial first: the agent's own session in it is the same run once more.
    HarborTrial(),
    InspectEval(),
    InspectLogs(),
    OpenHandsFolder(),
    Tau2Folder(),
    ClaudeCodeFolder(),
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


def labels() -> dict[str, str]:
    """Return what people call each format, by slug."""
    files = {one.slug: one.label for one in FORMATS}
    folders = {one.slug: one.label for one in FOLDER_FORMATS}
    return {**files, **folders, ARCHIVE: "Archive of several formats"}


def versions() -> dict[str, int]:
    """Return the version of each reader that is here now, by slug."""
    files = {one.slug: one.version for one in FORMATS}
    folders = {one.slug: one.version for one in FOLDER_FORMATS}
    return files | folders


def read_file(
    file: BinaryIO,
    *,
    name: str = "",
    format_override: str = "",
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> Generator[Item, None, None]:
    """Yield what an upload holds, a plain file or a zip or tar of many.

    `Opened` comes before the items of each file. A seekable `file` is needed for
    archives. With `format_override` that reader reads every file. Raises `KeyError`
    for an unknown format, `TooLarge` beyond the limits, and `UnreadableTrace` when
    nothing at all can be read.
    """
    readers = _readers(format_override)
    return read_with(readers, file, name=name, max_unpacked_bytes=max_unpacked_bytes)


def read_folder(
    files: Sequence[tuple[str, Path]],
    *,
    format_override: str = "",
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
) -> Generator[Item, None, None]:
    """Yield what files of a disk hold, as `read_file` does for a zip of them.

    `files` are names with slashes, as in the zip, and where the files are. Raises as
    `read_file` does, and `OSError` for a file that cannot be opened.
    """
    archive = open_folder(files, Meter(max_unpacked_bytes))
    return read_members(_readers(format_override), archive)


def _readers(format_override: str) -> Readers:
    chosen = by_slug(format_override) if format_override else None
    return Readers(
        choose=(lambda _: chosen) if chosen else detect,
        why_none=why_unknown,
        folders=() if chosen else FOLDER_FORMATS,
    )
