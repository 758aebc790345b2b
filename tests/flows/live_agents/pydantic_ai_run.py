"""A billing agent of Pydantic-AI against a model server on loopback."""

import os

from exporting import exporting_provider
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = exporting_provider()
try:
    from pydantic_ai.capabilities import Instrumentation

    more = {
        "capabilities": [
            Instrumentation(InstrumentationSettings(tracer_provider=provider))
        ]
    }
except ImportError:
    more = {"instrument": InstrumentationSettings(tracer_provider=provider)}
billing = Agent(
    OpenAIChatModel(
        "gpt-4o",
        provider=OpenAIProvider(base_url=os.environ["MODEL_SERVER"], api_key="none"),
    ),
    name="billing",
    **more,
)


@billing.tool_plain
def lookup_invoice(number: int) -> str:
    """Look up one invoice."""
    return f"Invoice {number} is open."


result = billing.run_sync("Which invoices are open?")
assert result.output == "All are open."
assert provider.force_flush(60_000)
provider.shutdown()
