"""Small files of our own in the formats of transcripts and APIs, by slug."""

from __future__ import annotations

from typing import Any

from tests.formats import agent_samples as agents
from tests.formats import framework_samples as frameworks
from tests.formats import provider_samples as providers
from tests.formats import stream_samples as streams

SAMPLES: dict[str, list[Any]] = {
    "request-log": [
        providers.REQUEST_LOG,
        providers.BATCH,
        providers.completion("hello"),
    ],
    "anthropic-messages": [
        providers.ANTHROPIC,
        [providers.anthropic_answer(1, 9), providers.anthropic_answer(2, 4)],
    ],
    "openai-responses": [
        providers.RESPONSE_ITEMS,
        [providers.response(1, 9), providers.response(2, 4, "resp_1")],
    ],
    "langchain-messages": [
        frameworks.LC_MESSAGES,
        {"messages": frameworks.LC_MESSAGES},
        frameworks.LC_HISTORY,
    ],
    "pydantic-ai-messages": [frameworks.PYDANTIC],
    "vercel-ai": [frameworks.VERCEL, frameworks.VERCEL_UI],
    "google-adk": [
        frameworks.ADK_SESSION,
        frameworks.ADK_EVALSET,
        frameworks.ADK_TEST,
        frameworks.ADK_SESSION["events"],
    ],
    "swe-agent": [agents.SWE_AGENT],
    "mini-swe-agent": [agents.MINI_SWE],
    "autogen": [agents.AUTOGEN, agents.AUTOGEN_LOG],
    "crewai": [agents.CREW, agents.CREW_OUTPUT, agents.CREW_LOG],
    "smolagents-memory": [agents.SMOL],
    "who-and-when": [agents.WHO_AND_WHEN, agents.WHO_AND_WHEN["history"]],
}
for slug, values in streams.SAMPLES.items():
    SAMPLES[slug] += values
