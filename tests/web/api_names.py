"""The names of the addresses of the JSON door, for walks over every address."""

from __future__ import annotations

_READ = """
    uploads upload signals sets comparison reports report verdicts patterns agents agent
    agent-definitions definitions tasks task trace-agents replay-targets replay-target
    replay-cases replay-case replay-batches replay-batch replay-batch-runs replay-run
"""
# Only acts, or lines, or what a batch that waits has not: tests/api/test_replays.py.
_OTHERS = """
    replay-case-lines replay-case-freeze replay-estimate replay-batch-cancel
    replay-batch-resume replay-recording
"""


def _named(words: str, door: str) -> set[str]:
    return {f"{door}-{word}" for word in words.split()}


API_OF_TOKEN = _named(_READ, "api")
API_OF_PROJECT = _named(_READ, "api-project")
API = API_OF_TOKEN | API_OF_PROJECT
API_OTHERS = _named(_OTHERS, "api") | _named(_OTHERS, "api-project")
