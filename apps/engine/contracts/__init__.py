"""Checks that a project defines itself: contracts over steps, and planted facts.

What is written here comes from people, so all of it is bounded: patterns, schemas,
expressions, and the work that they may cost on one trace.
"""

from apps.engine.contracts.definitions import definition_check
from apps.engine.contracts.spec import BadDefinition

__all__ = ["BadDefinition", "definition_check"]
