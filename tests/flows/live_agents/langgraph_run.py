"""A billing agent of LangGraph against a model server on loopback."""

import os

from exporting import exporting_provider
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor

provider = exporting_provider()
LangChainInstrumentor().instrument(tracer_provider=provider)


@tool
def lookup_invoice(number: int) -> str:
    """Look up one invoice."""
    return f"Invoice {number} is open."


model = ChatOpenAI(
    model="gpt-4o", base_url=os.environ["MODEL_SERVER"], api_key="none"
).bind_tools([lookup_invoice])


def agent(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode([lookup_invoice]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
billing = graph.compile(name="billing")
question = {"messages": [("user", "Which invoices are open?")]}
answer = billing.invoke(question, {"recursion_limit": 50})
assert answer["messages"][-1].content == "All are open."
assert provider.force_flush(60_000)
provider.shutdown()
