"""Signals as one SARIF 2.1.0 log, for places that show such logs beside code.

A signal is a prompt to look, so no result has the level "error". Quiet and not
applicable answers are counts in the properties of the run, never results.
Source of the format: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from apps.engine.check import Check, Level
from evalsite.offline.answers import Answered
from evalsite.offline.printers import chance_as_json
from evalsite.offline.reading import Complaint
from evalsite.offline.tally import CheckTally, Tally

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
_LEVELS: Final = {Level.TELEMETRY: "note", Level.REVIEW_SIGNAL: "warning"}
_MOST_COMPLAINTS: Final = 1_000


class SarifLog:
    """Writes the log piece by piece: results are not held in memory."""

    def __init__(self, checks: tuple[Check, ...]) -> None:
        self._checks = checks
        self._places = {check.slug: place for place, check in enumerate(checks)}
        self._results = 0
        self._complaints: list[Complaint] = []

    def begin(self) -> str:
        """The log up to its first result."""
        driver = {
            "name": "Evalsite",
            "rules": [_rule(check) for check in self._checks],
        }
        return (
            f'{{"$schema": {_json(SCHEMA)}, "version": "2.1.0", "runs": [{{'
            f'"tool": {{"driver": {_json(driver)}}}, "results": ['
        )

    def answer(self, found: Answered) -> str:
        """The result that a signal is; nothing for another answer."""
        if not found.is_signal:
            return ""
        before = ",\n" if self._results else "\n"
        self._results += 1
        return before + _json(_result(found, self._places[found.check.slug]))

    def complaint(self, found: Complaint) -> str:
        """Nothing yet: what was not read stands at the end."""
        if len(self._complaints) < _MOST_COMPLAINTS:
            self._complaints.append(found)
        return ""

    def end(self, tally: Tally, code: int) -> str:
        """The log from its last result on."""
        invocation = {
            "executionSuccessful": not tally.incomplete,
            "exitCode": code,
            "toolExecutionNotifications": [
                _notification(one) for one in self._complaints
            ],
        }
        counts = {slug: _counts(one) for slug, one in tally.of_checks.items()}
        properties = {"traces": tally.traces, "checks": counts}
        return (
            f'\n], "invocations": [{_json(invocation)}], '
            f'"properties": {_json(properties)}}}]}}\n'
        )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.slug,
        "name": "".join(word.capitalize() for word in check.slug.split("-")),
        "shortDescription": {"text": f"{check.label}."},
        "fullDescription": {"text": check.observes},
        "help": {
            "text": f"What is observed. {check.observes}\n"
            f"Null model. {check.null_model}\n"
            f"What makes it material. {check.material_when}\n"
            f"What to do next. {check.next_step}"
        },
        "defaultConfiguration": {"level": _LEVELS[check.level]},
        "properties": {
            "version": check.version,
            "level": check.level.value,
            "basis": check.basis.value,
            "parameters": check.parameters,
            "observes": check.observes,
            "null_model": check.null_model,
            "material_when": check.material_when,
            "next_step": check.next_step,
        },
    }


def _result(found: Answered, place: int) -> dict[str, Any]:
    one, evidence = found.screening, found.screening.evidence
    return {
        "ruleId": found.check.slug,
        "ruleIndex": place,
        "level": _LEVELS[one.level],
        "message": {"text": f"{one.headline.removesuffix('.')}. {one.reason}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri_of(_place(found))}
                },
                "logicalLocations": _logical(found),
            }
        ],
        "partialFingerprints": {
            "input/v1": one.input_hash,
            "scope/v1": evidence.scope,
        },
        "properties": {
            "check_version": found.check.version,
            "level": one.level.value,
            "reason_code": one.reason_code,
            "format": found.format,
            "member": found.member,
            "trace": found.trace,
            "trace_id": found.trace_id,
            "agent": evidence.agent,
            "steps": list(evidence.steps),
            "p": chance_as_json(evidence.chance),
            "expected": evidence.chance_of_signal,
        },
    }


def _logical(found: Answered) -> list[dict[str, str]]:
    """The trace, and the first step that the signal rests on."""
    inside = f"{found.member}/" if found.member else ""
    trace = f"{inside}{found.trace_id}"
    named = [{"name": found.trace, "fullyQualifiedName": trace, "kind": "trace"}]
    if found.screening.evidence.steps:
        step = f"step {found.screening.evidence.steps[0]}"
        named.append(
            {"name": step, "fullyQualifiedName": f"{trace}/{step}", "kind": "step"}
        )
    return named


def _place(found: Answered) -> str:
    """The file that a person can open: below a folder it is the member itself."""
    if found.member and Path(found.file).is_dir():
        return f"{found.file}/{found.member}"
    return found.file


def uri_of(file: str) -> str:
    """A path as a URI: relative below the working folder, else `file:///…`."""
    # Not resolved: a link is named as the person named it.
    path = Path(os.path.normpath(Path(file).absolute()))
    here = Path.cwd()
    if path.is_relative_to(here):
        return quote(path.relative_to(here).as_posix())
    return f"file://{quote(path.as_posix())}"


def _notification(one: Complaint) -> dict[str, Any]:
    place = f"{one.place}: " if one.place else ""
    return {
        "level": "warning" if one.is_incomplete or one.place else "note",
        "message": {"text": f"{place}{one.sentence}"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": uri_of(one.file)}}}
        ],
    }


def _counts(one: CheckTally) -> dict[str, Any]:
    null = one.by_chance
    return {
        "signals": one.signals,
        "for_review": one.queued,
        "quiet": one.quiet,
        "not_applicable": one.not_applicable,
        "by_chance": null
        and {"expected": null.expected, "low": null.low, "high": null.high},
    }
