"""What an agent decided, extracted from what it did, so that trials can be compared.

A definition says where the decision stands and what of it counts as the same; where
nobody wrote one, a declared order of rules is used. Prose is never compared unasked.
"""

from apps.engine.extraction.automatic import AUTOMATIC_ORDER, FIELD_NAMES
from apps.engine.extraction.extractor import (
    Extracted,
    Extractor,
    extracted,
    extractor,
)
from apps.engine.extraction.found import DecisionState
from apps.engine.extraction.spec import (
    AUTOMATIC,
    BadDecision,
    DecisionKind,
    DecisionNormaliser,
    DecisionSpec,
    Place,
    Source,
    Which,
    decoded_decision,
    encoded,
)
from apps.engine.extraction.wording import NORMALISERS, sentence_of

__all__ = [
    "AUTOMATIC",
    "AUTOMATIC_ORDER",
    "FIELD_NAMES",
    "NORMALISERS",
    "BadDecision",
    "DecisionKind",
    "DecisionNormaliser",
    "DecisionSpec",
    "DecisionState",
    "Extracted",
    "Extractor",
    "Place",
    "Source",
    "Which",
    "decoded_decision",
    "encoded",
    "extracted",
    "extractor",
    "sentence_of",
]
