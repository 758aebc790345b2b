"""What a report must admit that it does not cover, as sentences."""

from __future__ import annotations

from apps.reports.document import CheckPart, CountsPart, UploadPart
from apps.reports.words import number, percent, plural

_NOT_MADE = (
    "Agents: no verdict of a single agent is made by this version; every agent counts "
    "as unknown, and masking was not looked for.",
    "Consistency of repeated trials, branch points and memory were not assessed.",
    "Nothing was replayed: all evidence is from traces as they were recorded.",
)


def not_checked(
    counts: CountsPart, checks: tuple[CheckPart, ...], uploads: tuple[UploadPart, ...]
) -> tuple[str, ...]:
    """Sentences about missing data, refused records, silent checks and absent parts."""
    return (
        *_about_usage(counts),
        *_about_outcomes(counts),
        *_about_uploads(uploads),
        *_about_checks(checks),
        *_NOT_MADE,
    )


def _about_usage(counts: CountsPart) -> tuple[str, ...]:
    missing = counts.model_calls - counts.usage_known
    if not missing:
        return ()
    return (
        f"Usage is missing on {number(missing)} of "
        f"{plural(counts.model_calls, 'model call')} "
        f"({percent(missing / counts.model_calls)}). Missing is not zero: checks that "
        "need output lengths are silent there.",
    )


def _about_outcomes(counts: CountsPart) -> tuple[str, ...]:
    unknown = counts.outcomes.get("unknown", 0)
    if not unknown:
        return ()
    return (
        f"The outcome of {number(unknown)} of {plural(counts.traces, 'trace')} is not "
        "recorded. Unknown is not a pass.",
    )


def _about_uploads(uploads: tuple[UploadPart, ...]) -> tuple[str, ...]:
    sentences = []
    for upload in uploads:
        if upload.failure:
            sentences.append(f"Upload {upload.id} was not read: {upload.failure}")
        elif upload.state != "done":
            sentences.append(f"Upload {upload.id} was still being read.")
        if upload.rejected:
            sentences.append(
                f"{plural(upload.rejected, 'record')} of upload {upload.id} "
                "could not be read and took part in no check."
            )
    return tuple(sentences)


def _about_checks(checks: tuple[CheckPart, ...]) -> tuple[str, ...]:
    silent = [check for check in checks if not check.applicable]
    if not silent:
        return ()
    names = ", ".join(f"{check.label} (version {check.version})" for check in silent)
    return (f"Answered about nothing here: {names}.",)
