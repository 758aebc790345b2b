"""Why a file was not taken; each message is a sentence for a person."""

from __future__ import annotations


class EmptyUpload(Exception):
    """There is nothing in the file."""


class NothingKept(EmptyUpload):
    """Nothing of the file may be kept: it could not be read, and bodies are not."""
