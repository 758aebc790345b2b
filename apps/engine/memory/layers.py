"""Which steps of a trace keep, shorten or look up what was said: the memory layers.

A layer is known by the kind of its step or by a declared pattern in its recorded name,
or in the name of the agent that owns it. A name is a hint and no proof.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.bodies.effects import Effect, effect_of, words_of
from apps.engine.bodies.texts import said_in
from apps.engine.contracts.patterns import Names
from apps.engine.memory.recall import valid_text
from apps.engine.sequences import steps_in_order
from apps.engine.trace import Body, Step, StepKind, ToolCall, Trace


class LayerNames(msgspec.Struct, frozen=True):
    """By which names layers are known, in small letters: `*` for anything, `|` for or."""

    summary: str = "*summar*|*condens*|*compact*|*digest*"
    memory: str = "*memor*|*remember*|*recall*|*_note|*_notes|note_*|notes_*"


LAYER_NAMES: Final = LayerNames()


class Layer(StrEnum):
    """What a step does with what was said."""

    SUMMARY = "summary"
    STORE = "store"
    STATE = "state"
    READ = "read"
    ERASE = "erase"


_ERASES: Final = frozenset({"delete", "remove", "forget", "clear", "erase", "reset"})
_STORES: Final = frozenset({"remember", "memorize", "memorise", "record", "take"})
_READS: Final = frozenset({"recall", "retrieve", "query"})
_KEEPS: Final = frozenset({"save", "store", "write", "add", "append", "update"})
_FETCHES: Final = frozenset({"get", "fetch", "load", "read", "list", "search", "find"})
_PLAIN: Final = frozenset({StepKind.TOOL_CALL, StepKind.OTHER, StepKind.MEMORY})
_SPEAKING: Final = frozenset({StepKind.MODEL_CALL, StepKind.AGENT})


def _by_verb(name: str) -> Layer | None:
    """What the verbs of a name say; `None` where they say nothing."""
    words = frozenset(words_of(name))
    effect = effect_of(name)
    if words & _ERASES:
        return Layer.ERASE
    if words & _READS or effect is Effect.READS:
        return Layer.READ
    if words & (_STORES | _KEEPS) or effect is Effect.WRITES:
        return Layer.STORE
    return None


def _fetches_or_keeps(name: str) -> bool:
    """Whether a name fetches or keeps a summary instead of making one."""
    first = words_of(name)[:1]
    return bool(first) and first[0] in _FETCHES | _READS | _KEEPS | _ERASES


class LayerStep(msgspec.Struct, frozen=True):
    """One step of a layer: what it was given and what it keeps or gives, as JSON.

    `key` says which of several memories of a trace it belongs to.
    """

    step: Step
    layer: Layer
    key: str
    agent: str
    taken: Any = None
    kept: Any = None


def layer_steps(trace: Trace, names: LayerNames = LAYER_NAMES) -> tuple[LayerStep, ...]:
    """The steps of memory layers that have a body, in order. Linear. Never raises.

    Raises `BadPattern` only for patterns that are too long.
    """
    finder = _Finder(trace, names)
    found = [finder.found(step) for step in steps_in_order(trace)]
    return tuple([each for each in found if each is not None])


def agent_of(trace: Trace, step: Step) -> str:
    """The recorded name of the agent that owns a step; empty where none is recorded."""
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return ""
    return valid_text(trace.invocations[number].agent or "")


class _Finder:
    def __init__(self, trace: Trace, names: LayerNames) -> None:
        self._trace = trace
        self._summary = Names(names.summary)
        self._memory = Names(names.memory)

    def found(self, step: Step) -> LayerStep | None:
        """The step as one of a layer; `None` for any other."""
        if step.body is None:
            return None
        agent = agent_of(self._trace, step)
        if step.kind is StepKind.RETRIEVAL:
            return LayerStep(step, Layer.READ, "", agent, kept=step.body.output)
        if step.kind in _SPEAKING:
            return self._of_agent(step, step.body, agent)
        if step.kind in _PLAIN:
            return self._of_step(step, step.body, agent)
        return None

    def _of_agent(self, step: Step, body: Body, agent: str) -> LayerStep | None:
        name = agent or step.name or ""
        if not (self._is_summary(name) or self._is_memory(name)):
            return None
        # A call that only asks for a tool says nothing that could keep a fact.
        if not said_in(body.output):
            return None
        # What the agent of a memory says is what it found: "Saved." keeps nothing.
        layer = Layer.SUMMARY if self._is_summary(name) else Layer.READ
        return LayerStep(step, layer, name, agent, body.input, body.output)

    def _of_step(self, step: Step, body: Body, agent: str) -> LayerStep | None:
        name = step.call.name if isinstance(step.call, ToolCall) else step.name or ""
        layer = self._layer(name, step.kind)
        if layer is None:
            return None
        key = "tools" if step.kind is StepKind.TOOL_CALL else name
        if layer is Layer.STORE:
            kept = body.output if body.input is None else body.input
            return LayerStep(step, layer, key, agent, kept=kept)
        if body.output is None and layer is Layer.STATE:
            return LayerStep(step, layer, key, agent, kept=body.input)
        return LayerStep(step, layer, key, agent, body.input, body.output)

    def _layer(self, name: str, kind: StepKind) -> Layer | None:
        is_summary = self._is_summary(name)
        if not (is_summary or kind is StepKind.MEMORY or self._is_memory(name)):
            return None
        layer = _by_verb(name)
        if is_summary and (layer is None or not _fetches_or_keeps(name)):
            return Layer.SUMMARY
        if layer is not None:
            return layer
        # A tool that names neither reading nor writing is not guessed about.
        return None if kind is StepKind.TOOL_CALL else Layer.STATE

    def _is_summary(self, name: str) -> bool:
        return self._summary.take(name.lower())

    def _is_memory(self, name: str) -> bool:
        return self._memory.take(name.lower())
