"""By which names recorded agents are known to be the same one.

Only spelling is levelled: case, blanks, underscores and hyphens. Whether two different
names are one agent is for people to say.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST: Final = 300
_GAPS: Final = re.compile(r"[\s_\-]+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def agent_key(name: str | None) -> str:
    """The normalised name: "TriageAgent", "triage-agent" and "Triage agent" are one.

    "" where no name is recorded. At most 300 characters. Applying it twice changes
    nothing.
    """
    if not name:
        return ""
    plain = unicodedata.normalize("NFKC", name)
    spaced = _GAPS.sub(" ", _HUMPS.sub(" ", plain)).strip()
    return spaced.casefold()[:LONGEST].strip()
