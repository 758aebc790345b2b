"""A billing agent of the OpenAI Agents SDK against a model server on loopback."""

import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from exporting import exporting_provider
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

provider = exporting_provider()
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


@function_tool
def lookup_invoice(number: int) -> str:
    """Look up one invoice."""
    return f"Invoice {number} is open."


client = AsyncOpenAI(base_url=os.environ["MODEL_SERVER"], api_key="none")
billing = Agent(
    name="billing",
    instructions="Answer questions about invoices.",
    tools=[lookup_invoice],
    model=OpenAIChatCompletionsModel(model="gpt-4o", openai_client=client),
)
result = Runner.run_sync(billing, "Which invoices are open?")
assert result.final_output == "All are open."
assert provider.force_flush(60_000)
provider.shutdown()
