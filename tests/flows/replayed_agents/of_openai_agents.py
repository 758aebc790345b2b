"""A billing agent of the OpenAI Agents SDK, with the tools that it is given."""

import json

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

set_tracing_disabled(True)


def tool_of(one):
    async def invoke(_context, arguments):
        return str(one.call(**json.loads(arguments or "{}")))

    return FunctionTool(
        name=one.name,
        description=one.description or one.name,
        params_json_schema={"type": "object", **one.parameters},
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


async def answer(asked):
    """What it answers, and what it used."""
    client = AsyncOpenAI(base_url=asked.model_url, api_key="none", max_retries=2)
    told = {
        "name": "billing",
        "instructions": "Answer questions about invoices.",
        "model": OpenAIChatCompletionsModel(model="small", openai_client=client),
        "model_settings": ModelSettings(
            temperature=asked.temperature, include_usage=asked.is_streamed or None
        ),
    }
    if not asked.mcp_url:
        tools = [tool_of(one) for one in asked.tools]
        return await ran(Agent(tools=tools, **told), asked)
    async with MCPServerStreamableHttp({"url": asked.mcp_url}) as server:
        return await ran(Agent(mcp_servers=[server], **told), asked)


async def ran(agent, asked):
    if asked.is_streamed:
        result = Runner.run_streamed(agent, asked.question)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, asked.question)
    used = result.context_wrapper.usage
    return result.final_output, used.input_tokens, used.output_tokens
