"""The agents as callables that are run in a sandbox: each imports what it needs."""

import importlib

from asked import Asked, OneTool


def asked_of(replay):
    tools = [
        OneTool(one.name, one.description, one.parameters, one) for one in replay.tools
    ]
    return Asked(
        question=replay.input,
        model_url=f"{replay.model_url}/v1",
        tools=tools,
        temperature=replay.temperature,
    )


async def _run(name, replay):
    found = importlib.import_module(name)
    output, _, _ = await found.answer(asked_of(replay))
    return output


async def openai_agents(replay):
    return await _run("of_openai_agents", replay)


async def langgraph(replay):
    return await _run("of_langgraph", replay)


async def pydantic_ai(replay):
    return await _run("of_pydantic_ai", replay)
