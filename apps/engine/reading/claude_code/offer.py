"""The tools that Claude Code offers its main agent, from the `init` line of a stream.

Source: https://docs.claude.com/en/docs/agent-sdk/typescript (SDKSystemMessage).
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.offered import offered_tools, open_ended
from apps.engine.reading.recorded import listed, mapping

# One tool under two names: newer versions ask for `Agent` and still list `Task`.
_SAME: Final = frozenset({"Task", "Agent"})
# Added by the program itself where an answer must follow a schema.
_ADDED: Final = "StructuredOutput"
_SETTLED: Final = frozenset({"connected", "failed", "disabled"})


def offer_in(line: dict[str, Any]) -> list[Any]:
    """The names that an `init` line lists, as `offered_tools` gives them.

    The list stays open where a server of tools may join later; it is empty where the
    line lists none.
    """
    offered = offered_tools({"tools": line.get("tools")})
    if not offered:
        return []
    names = [one for one in offered if isinstance(one, str)]
    twins = _SAME.difference(names) if not _SAME.isdisjoint(names) else frozenset()
    offered = [*sorted(twins), _ADDED, *offered]
    servers = listed(line.get("mcp_servers"))
    is_settled = all(mapping(one).get("status") in _SETTLED for one in servers)
    return offered if is_settled else open_ended(offered)
