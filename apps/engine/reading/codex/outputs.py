"""Results of tools as Codex records them: an exit code in a field or in the head.

The head is written by Codex itself, above the output of the command; the output is
never searched.
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading.recorded import plain_text
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import StepStatus

_EXIT: Final = re.compile(
    r"(?:\A|\n)(?:Exit code: |Process exited with code )(-?\d+)(?=\n|\Z)"
)
_HEADER: Final = 400


def ending_of(output: Any) -> tuple[StepStatus, int | None]:
    """Return how a tool ended, and the exit code where it was not zero."""
    if isinstance(output, dict):
        metadata = output.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        good = output.get("success")
        if isinstance(code, int) and not isinstance(code, bool):
            return _by_code(code)
        if isinstance(good, bool):
            return (StepStatus.OK if good else StepStatus.ERROR), None
        return StepStatus.UNSET, None
    if isinstance(output, str):
        header = output[:_HEADER].partition("\nOutput:")[0]
        found = _EXIT.search(header)
        if found and whole_number(found.group(1).lstrip("-")) is not None:
            return _by_code(int(found.group(1)))
    return StepStatus.UNSET, None


def _by_code(code: int) -> tuple[StepStatus, int | None]:
    return (StepStatus.ERROR, code) if code else (StepStatus.OK, None)


def content_of(output: Any) -> Any:
    """Return what the tool gave back, without the wrapping of older versions."""
    if isinstance(output, dict):
        for key in ("output", "content"):
            if key in output:
                return output[key]
    return plain_text(output)
