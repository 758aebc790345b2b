"""Scores of one trace and of the trials of one task, as plain values.

What was decided and what contracts say is settled when a trace is scored; a task is
scored from the scores of its trials, without their texts.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent, or the whole system, decided in one trace.

    `state` is that of the extraction and `decision` the canonical text that is
    compared. `exact`, `structure` and `input` are hashes of 16 hex digits of the whole
    output, its shape and what was given; "" where not recorded. `features` describe the
    run for the search for patterns.
    """

    state: str
    decision: str = ""
    shown: str = ""
    how: str = ""
    step: int | None = None
    exact: str = ""
    structure: str = ""
    input: str = ""
    temperature: float | None = None
    features: dict[str, Any] = {}


class ConductScore(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent did in one trace, and what its contracts say of it.

    `agent` is the key of the agent, `name` as it is recorded. `judged` has a JSON
    value for each contract, with its counts and the first answer that did not hold; the
    counts are of all answers, one per contract and invocation. `colour` is the verdict on
    this trace alone, `reasons` its sentences.
    """

    agent: str
    name: str
    decided: Decided
    invocations: int
    failures: int = 0
    calls: int = 0
    tools: dict[str, int] = {}
    models: tuple[str, ...] = ()
    held: int = 0
    broken: int = 0
    undecided: int = 0
    not_applying: int = 0
    judged: tuple[dict[str, Any], ...] = ()
    recalled: int = 0
    lost: int = 0
    contradicted: int = 0
    findings: int = 0
    colour: str = "unknown"
    reasons: tuple[str, ...] = ()


class TraceScore(msgspec.Struct, frozen=True, kw_only=True):
    """One trace: its outcome under what is expected, its decision, and its agents.

    `outcome` is green, red or unknown. `points` are the packed decision points,
    `is_order_uncertain` says that agents acted at the same time. `recalls` are the results of memory as JSON values.
    """

    outcome: str
    outcome_reason: str
    decided: Decided
    points: bytes
    is_order_uncertain: bool = False
    recalls: tuple[dict[str, Any], ...] = ()
    conducts: tuple[ConductScore, ...] = ()

    @property
    def masked(self) -> tuple[str, ...]:
        """The agents that are red here although the outcome is green."""
        if self.outcome != "green":
            return ()
        return tuple([one.agent for one in self.conducts if one.colour == "red"])

    @property
    def is_gap(self) -> bool:
        """Whether the outcome is red although every agent is green."""
        return (
            self.outcome == "red"
            and bool(self.conducts)
            and all(one.colour == "green" for one in self.conducts)
        )


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of a task as it is scored: `id` is stable, `label` is for people."""

    id: str
    label: str
    score: TraceScore


class AgentTaskScore(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent did over the trials of one task.

    `consistency` is the verdict on its decisions and `majority` the number of trials
    with the most frequent one, of all `trials`, which are those in which it acted.
    `is_masked`: it is red or unstable and every known trial passed, or it is red in a
    trial that passed. `detail` holds the distinct decisions
    with their trials, agreements with intervals and the reasons, as JSON values.
    """

    agent: str
    name: str
    trials: int
    decided: int
    missing: int
    failed: int
    distinct: int
    majority: int
    distinct_inputs: int
    consistency: str
    is_stable_but_wrong: bool
    held: int
    broken: int
    undecided: int
    colour: str
    is_masked: bool
    detail: dict[str, Any]


class TaskScore(msgspec.Struct, frozen=True, kw_only=True):
    """What the trials of one task have in common, end to end and for each agent.

    `outcome` is green where every trial with a known outcome passed, red where none
    did, mixed or unknown. `first_fork` is the least step number (from 1) at which
    trials fork, `decisive` a sentence about the fork that the outcomes hang on and
    `decisive_chance` how often chance alone makes one decisive (`None`: never).
    """

    trials: int
    passed: int
    failed: int
    outcome: str
    consistency: str
    decided: int
    distinct: int
    majority: int
    is_stable_but_wrong: bool
    fork_count: int
    first_fork: int | None
    decisive: str
    decisive_chance: float | None
    is_gap: bool
    agents: tuple[AgentTaskScore, ...]
    detail: dict[str, Any]

    @property
    def red(self) -> int:
        """How many agents are red on this task."""
        return sum(one.colour == "red" for one in self.agents)

    @property
    def unstable(self) -> int:
        """How many agents are unstable on this task."""
        return sum(one.colour == "unstable" for one in self.agents)

    @property
    def masked(self) -> int:
        """How many agents are masked here, in the task as a whole or in one trial."""
        return sum(one.is_masked for one in self.agents)
