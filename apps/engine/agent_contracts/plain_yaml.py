"""YAML as plain JSON values: no aliases, no tags, no key twice, bounded in every way.

Only what JSON has is read as something other than a text: true, false, null and decimal
numbers. `no`, `012` and `2026-01-31` stay the texts that somebody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

import yaml

LARGEST: Final = 262_144
DEEPEST: Final = 40
MOST_NODES: Final = 20_000

_NUMBERS: Final = list("-+0123456789")
_RESOLVED: Final[tuple[tuple[str, str, list[str]], ...]] = (
    ("tag:yaml.org,2002:bool", r"true|false", list("tf")),
    ("tag:yaml.org,2002:null", r"null|~|", ["n", "~", ""]),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)", _NUMBERS),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)",
        _NUMBERS,
    ),
)


class BadYaml(ValueError):
    """A text that is not used; the message is a sentence with the line."""


class _Reader(yaml.SafeLoader):
    """A safe loader that refuses what could surprise or run away."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        events: Any = self
        event = events.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused("anchors and aliases (& and *) are not read", event)
        if getattr(event, "tag", None):
            raise _refused("tags (!…) are not read", event)
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise _refused(f"there are more than {MOST_NODES:,} values", event)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _refused(f"values are nested deeper than {DEEPEST} levels", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("the name of a field must be a text", key)
            if key.value in seen:
                raise _refused(f"“{key.value[:60]}” stands twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


class _Writer(yaml.SafeDumper):
    """A safe dumper that writes no aliases, and quotes what the reader would resolve."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


# Breaks of lines beside the usual one come back as blanks unless they are escaped.
_ESCAPED: Final = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ufeff]")


def _text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _ESCAPED.search(text) else None
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _text)
for _tag, _pattern, _first in _RESOLVED:
    _compiled = re.compile(rf"^(?:{_pattern})$")
    _Reader.add_implicit_resolver(_tag, _compiled, _first)
    _Writer.add_implicit_resolver(_tag, _compiled, _first)


def read_yaml(text: str) -> Any:
    """The JSON value in a text; raises `BadYaml` with a sentence."""
    if len(text) > LARGEST:
        raise BadYaml(
            f"The file has {len(text):,} characters; at most {LARGEST:,} are read."
        )
    try:
        return _value(text)
    except yaml.MarkedYAMLError as error:
        raise BadYaml(_in_words(error)) from None
    except yaml.YAMLError:
        raise BadYaml(
            "The file holds a character that YAML does not allow, such as NUL."
        ) from None
    except RecursionError:
        raise BadYaml("The file is nested too deep.") from None
    except ValueError:
        raise BadYaml("The file holds a number of too many digits.") from None


def _value(text: str) -> Any:
    reader = _Reader(text)
    try:
        return reader.get_single_data()
    finally:
        reader.dispose()


def write_yaml(value: Any) -> str:
    """A JSON value as YAML, keys in the order that they have."""
    written: str = yaml.dump(
        value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=88
    )
    return written


def _refused(what: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, what, at.start_mark)


def _in_words(error: yaml.MarkedYAMLError) -> str:
    what = (error.problem or "this is no YAML").strip().rstrip(".")[:200]
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"The file is no YAML that is read here: {what}."
    return f"Line {mark.line + 1}, character {mark.column + 1}: {what}."
