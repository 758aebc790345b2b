"""Runs local code walled off from this machine, and says what it tried to reach.

`probe` tells what isolation can be reached here, `run_program` runs one order, `Run`
is a run that is talked to turn by turn. What is not held back is said with each run
(`Reached.not_walled`). Nothing here is an assurance against bugs of the kernel.
"""

from apps.isolation.sandbox.levels import LEVEL_WORDS, Level, Reached
from apps.isolation.sandbox.order import (
    RELAY_URL,
    Allowed,
    Isolated,
    Refused,
    Relay,
    RelayRequest,
    RelayResponse,
    SandboxOrder,
    StopRun,
)
from apps.isolation.sandbox.probing import probe
from apps.isolation.sandbox.runner import Run, run_program

__all__ = [
    "LEVEL_WORDS",
    "RELAY_URL",
    "Allowed",
    "Isolated",
    "Level",
    "Reached",
    "Refused",
    "Relay",
    "RelayRequest",
    "RelayResponse",
    "Run",
    "SandboxOrder",
    "StopRun",
    "probe",
    "run_program",
]
