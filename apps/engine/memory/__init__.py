"""Whether a fact that was told is still known where it is needed, in recorded traces.

Facts are declared (a value, where it is told, where it is needed) or detected where
one exact value is told and used again. A failure is localised as far as what was
recorded goes, and no further. It is not said that an answer is right, nor that a value
which nobody needed would have been remembered.
"""

from apps.engine.memory.declared import memory_of, recall_of
from apps.engine.memory.layers import LAYER_NAMES, LayerNames
from apps.engine.memory.recall import (
    FAILED,
    Place,
    Recall,
    Source,
    State,
    counted,
)
from apps.engine.memory.reuse import detected_reuse

__all__ = [
    "FAILED",
    "LAYER_NAMES",
    "LayerNames",
    "Place",
    "Recall",
    "Source",
    "State",
    "counted",
    "detected_reuse",
    "memory_of",
    "recall_of",
]
