"""A billing agent of Pydantic-AI, with the tools that it is given."""

import importlib
from contextlib import asynccontextmanager

from openai import AsyncOpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def tool_of(name, description, schema, call):
    """`call` is async and takes the arguments by name."""
    return Tool.from_schema(
        call, name=name, description=description or name, json_schema=schema
    )


def local(one):
    async def call(**arguments):
        return str(one.call(**arguments))

    schema = {"type": "object", **one.parameters}
    return tool_of(one.name, one.description, schema, call)


@asynccontextmanager
async def tools_for(asked):
    if not asked.mcp_url:
        yield [local(one) for one in asked.tools]
        return
    # Where no MCP is needed it is not imported either, which takes its time.
    client_of = importlib.import_module("mcp").Client
    async with client_of(asked.mcp_url, mode="legacy") as client:

        def remote(name):
            async def call(**arguments):
                found = await client.call_tool(name, arguments)
                return found.content[0].text

            return call

        listed = await client.list_tools()
        yield [
            tool_of(one.name, one.description, one.input_schema, remote(one.name))
            for one in listed.tools
        ]


async def answer(asked):
    """What it answers, and what it used."""
    client = AsyncOpenAI(base_url=asked.model_url, api_key="none", max_retries=2)
    async with tools_for(asked) as tools:
        agent = Agent(
            OpenAIChatModel("small", provider=OpenAIProvider(openai_client=client)),
            name="billing",
            tools=tools,
            model_settings={"temperature": asked.temperature},
        )
        if asked.is_streamed:
            async with agent.run_stream(asked.question) as result:
                output = await result.get_output()
                used = result.usage
        else:
            result = await agent.run(asked.question)
            output, used = result.output, result.usage
    used = used() if callable(used) else used
    return output, used.input_tokens, used.output_tokens
