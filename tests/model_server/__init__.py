"""A model server on loopback for tests: it does what a test told it to do.

    with model_server("scripted", answers=[call("lookup", number=7), "It is open."]) as s:
        ...  # s.url is the base address, s.stats what was seen

It speaks chat completions and Responses, whole and streamed, and is deterministic: what
it answers follows from the messages, from the script, or from the seed and the number
of the call. `GET /__stats` gives the counts as JSON. See `modes.MODES`.
"""

from tests.model_server.answers import Answer, call, calls
from tests.model_server.faults import MALFORMED, SHAPES, USAGES
from tests.model_server.modes import MODES
from tests.model_server.serving import ModelServer, Stats, model_server

__all__ = [
    "MALFORMED",
    "MODES",
    "SHAPES",
    "USAGES",
    "Answer",
    "ModelServer",
    "Stats",
    "call",
    "calls",
    "model_server",
]
