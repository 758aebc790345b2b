"""The tools an agent was offered, with their descriptions and schemas where recorded.

Which names were offered is what the checks read; the definition of each is sought by
its shape. A tool without a definition keeps its name alone: no schema is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.offers import Offer, offer_of, plain_name, together
from apps.engine.replay.case import ToolOffer
from apps.engine.replay.chat_messages import is_definition
from apps.engine.trace import Body

_SCHEMAS: Final = (
    "parameters", "input_schema", "inputSchema", "parameters_json_schema",
    "parametersJsonSchema", "json_schema",
)  # fmt: skip
_LONG: Final = frozenset({"messages", "contents", "output", "prompt"})
_DEEPEST: Final = 10
_MOST_VALUES: Final = 20_000


def offered_tools(
    bodies: Iterable[Body | None], called: Iterable[str]
) -> tuple[ToolOffer, ...]:
    """The tools of the first model calls, else those that were called, by first seen.

    Names are as the tools were called, where a provider sent them with other
    characters. Tools that were called though no list holds them come last.
    """
    kept = [body for body in bodies if body is not None]
    names = list(dict.fromkeys(called))
    own = {plain_name(name): name for name in reversed(names)}
    offered = together(offer_of(body) for body in kept)
    tools = {
        key: _named(offer, own.get(key, offer.name))
        for key, offer in _listed(kept, offered).items()
    }
    for name in names:
        tools.setdefault(plain_name(name), ToolOffer(name=name))
    return tuple(tools.values())


def _listed(bodies: list[Body], offered: Offer | None) -> dict[str, ToolOffer]:
    """What was offered by plain name: in the order of the definitions, then by name."""
    names = frozenset() if offered is None else offered.names
    found: dict[str, ToolOffer] = {}
    for body in bodies:
        for holder, is_sure in _holders(body):
            for offer in _definitions(holder):
                key = plain_name(offer.name)
                if is_sure or key in names:
                    found.setdefault(key, offer)
    return found | {key: ToolOffer(name=key) for key in sorted(names - set(found))}


def _named(offer: ToolOffer, name: str) -> ToolOffer:
    return ToolOffer(
        name=name, description=offer.description, parameters=offer.parameters
    )


def _holders(body: Body) -> Iterator[tuple[Any, bool]]:
    """What can hold definitions, and whether it holds nothing else of such a shape."""
    yield body.attributes, False
    value = opened(body.input)
    if isinstance(value, dict):
        yield {key: item for key, item in value.items() if key not in _LONG}, False
        value = opened(value.get("messages"))
    if isinstance(value, list):
        yield [one["content"] for one in value if is_definition(one)], True


def _definitions(holder: Any) -> Iterator[ToolOffer]:
    waiting: list[tuple[Any, int]] = [(holder, 0)]
    looked_at = 0
    while waiting and looked_at < _MOST_VALUES:
        value, depth = waiting.pop()
        looked_at += 1
        value = opened(value)
        if isinstance(value, list) and depth < _DEEPEST:
            waiting += [(item, depth + 1) for item in reversed(value)]
        elif isinstance(value, dict):
            offer = _definition(value)
            if offer is not None:
                yield offer
            elif depth < _DEEPEST:
                waiting += [
                    (item, depth + 1)
                    for key, item in reversed(value.items())
                    if key not in _LONG
                ]


def _definition(value: dict[str, Any]) -> ToolOffer | None:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return None
    key = next((key for key in _SCHEMAS if key in value), None)
    schema = opened(value[key]) if key is not None else None
    if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
        schema = schema["json"]
    described = value.get("description")
    is_tool = isinstance(schema, dict) or (
        value.get("type") == "function" and "arguments" not in value
    )
    if not is_tool:
        return None
    return ToolOffer(
        name=name,
        description=described if isinstance(described, str) else "",
        parameters=schema if isinstance(schema, dict) else {},
    )
