"""A billing agent of LangGraph, with the tools that it is given."""

import importlib
from contextlib import asynccontextmanager

from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


def tool_of(name, description, schema, call):
    """`call` is async and takes the arguments by name."""
    return StructuredTool(
        name=name,
        description=description or name,
        args_schema={"type": "object", "title": name, **schema},
        coroutine=call,
    )


def local(one):
    async def call(**arguments):
        return str(one.call(**arguments))

    return tool_of(one.name, one.description, one.parameters, call)


@asynccontextmanager
async def tools_for(asked):
    if not asked.mcp_url:
        yield [local(one) for one in asked.tools]
        return
    # Where no MCP is needed it is not imported either, which takes its time.
    client_of = importlib.import_module("mcp").Client
    async with client_of(asked.mcp_url) as client:

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
    async with tools_for(asked) as tools:
        model = ChatOpenAI(
            model="small",
            base_url=asked.model_url,
            api_key="none",
            temperature=asked.temperature,
            streaming=asked.is_streamed,
            stream_usage=asked.is_streamed,
            max_retries=2,
        ).bind_tools(tools)

        async def think(state):
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("agent", think)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "agent")
        graph.add_conditional_edges("agent", tools_condition)
        graph.add_edge("tools", "agent")
        question = {"messages": [("user", asked.question)]}
        found = await graph.compile(name="billing").ainvoke(question)
    messages = found["messages"]
    used = [m.usage_metadata for m in messages if getattr(m, "usage_metadata", None)]
    return (
        messages[-1].content,
        sum(one["input_tokens"] for one in used),
        sum(one["output_tokens"] for one in used),
    )
