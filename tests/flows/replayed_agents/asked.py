"""What each of the agents is asked, wherever it runs."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OneTool:
    """A tool: `call` takes the arguments by name and gives the result or raises."""

    name: str
    description: str
    parameters: dict[str, Any]
    call: Any


@dataclass(frozen=True)
class Asked:
    """A question, the address of the model, and the tools or their MCP server."""

    question: str
    model_url: str
    tools: list[OneTool] = field(default_factory=list)
    mcp_url: str = ""
    is_streamed: bool = False
    temperature: float | None = None
