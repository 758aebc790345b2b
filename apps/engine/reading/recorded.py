"""Values of which nothing is known yet, read safely: an object, a list, a text, a kind.

What is not of the expected type is taken for absent; nothing is converted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apps.engine.reading.text_limits import Remarks, clip
from apps.engine.trace import Body, Step


def first_text(
    facts: dict[str, Any], keys: tuple[str, ...], limit: int, remarks: Remarks
) -> str | None:
    """Return the first value among `keys` that is a text or a number, cut to `limit`."""
    texts = (clip(facts.get(key), limit, remarks) for key in keys)
    return next((text for text in texts if text), None)


def time_range(steps: Iterable[Step]) -> tuple[int | None, int | None]:
    """Return the earliest and the latest recorded time of `steps`, in nanoseconds."""
    times = [
        time
        for step in steps
        for time in (step.start_ns, step.end_ns)
        if time is not None
    ]
    return min(times, default=None), max(times, default=None)


def mapping(value: Any) -> dict[str, Any]:
    """Return `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def either(value: Any, snake: str, camel: str) -> Any:
    """Return what an object holds at `snake`, or at `camel` where that is not recorded.

    The two spellings may be given in either order.
    """
    if not isinstance(value, dict):
        return None
    found = value.get(snake)
    return value.get(camel) if found is None else found


def first_of(fields: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the first value at one of `keys` that is neither absent, null nor blank."""
    for key in keys:
        value = fields.get(key)
        if value is not None and value != "":
            return value
    return None


def listed(value: Any) -> list[Any]:
    """Return `value` where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """Return `value` where it is a text, else "": safe to look up in a set of words."""
    return value if isinstance(value, str) else ""


def text_in(value: Any, key: str) -> str | None:
    """Return the text at `key` of an object, or `None` where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def kind_of(value: Any) -> str | None:
    """Return the text at `type` of an object, or `None` where there is none."""
    return text_in(value, "type")


def plain_text(content: Any) -> Any:
    """Return content parts as one text where each has one, else as they are.

    A single part counts as a list of one. `None` where the texts are empty.
    """
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return content["text"] or None
    if not isinstance(content, list):
        return content
    texts: list[str] = []
    for part in content:
        text = part.get("text", part.get("refusal")) if isinstance(part, dict) else part
        if not isinstance(text, str):
            return content
        texts.append(text)
    return "\n".join(texts) or None


def body_with(
    *,
    input: Any = None,  # noqa: A002
    output: Any = None,
    reasoning: Any = None,
    attributes: dict[str, Any] | None = None,
) -> Body | None:
    """Return the body that holds these, or `None` where there is nothing to read."""
    attributes = attributes or None
    if all(part is None for part in (input, output, reasoning, attributes)):
        return None
    return Body(input=input, output=output, reasoning=reasoning, attributes=attributes)


def remark_unread(remarks: Remarks, what: str, counts: Mapping[str, int]) -> None:
    """Remark on things that were not read: how many, and of which kinds (20 at most).

    `what` names them in the plural, such as "Lines".
    """
    if counts:
        kinds = ", ".join(sorted(kind[:60] for kind in counts)[:20])
        total = sum(counts.values())
        remarks.add(f"{what} of kinds that are not read: {total} ({kinds}).")


def objects_in(value: Any, depth: int = 8) -> Iterator[dict[str, Any]]:
    """Yield every object inside a value, outer ones first, down to `depth` levels."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list) and depth:
        for item in value:
            yield from objects_in(item, depth - 1)
