"""What a report says of agents, tasks and trials, as plain structs of its document.

Every count is as it was scored when the report was frozen. Nothing here says that an
agent caused an outcome. Steps count from 0; None is "not known", never 0.
"""

from __future__ import annotations

import msgspec

from apps.reports.rates import Rate


class StandingPart(msgspec.Struct, frozen=True):
    """How far scoring was. `left` traces were not scored by what is asked.

    `is_behind` also while only tasks or verdicts waited; `settled_at` is UTC, "" where
    nothing was ever settled.
    """

    left: int = 0
    is_behind: bool = False
    settled_at: str = ""


class OutcomesPart(msgspec.Struct, frozen=True):
    """The outcomes of traces or tasks under what is expected of them.

    Of `failed`, in `all_green` every agent that acts is green: no contract saw it.
    """

    n: int = 0
    passed: int = 0
    failed: int = 0
    mixed: int = 0
    unknown: int = 0
    all_green: int = 0


class MaskingPart(msgspec.Struct, frozen=True):
    """An agent that is red or unstable behind outcomes that passed."""

    agent: str
    colour: str
    sentence: str
    traces: Rate
    tasks: Rate
    reasons: tuple[str, ...] = ()


class AgentPart(msgspec.Struct, frozen=True):
    """The verdict of one agent over the project, and what it rests on.

    `held` is of the contracts that applied, one per contract and invocation; `stable`
    of the tasks with a score; `recalled` of the planted facts that were decided;
    `masked_traces` and `masked_tasks` of those that passed and exercise it.
    """

    id: int
    name: str
    colour: str
    reasons: tuple[str, ...]
    gaps: tuple[str, ...]
    traces: int
    tasks: int
    invocations: int
    failed: int
    contracts: int
    held: Rate
    broken: int
    undecided: int
    not_applying: int
    stable: Rate
    drifting: int
    non_deterministic: int
    insufficient: int
    stable_but_wrong: int
    recalled: Rate
    findings: int
    masked_traces: Rate
    masked_tasks: Rate


class CasePart(msgspec.Struct, frozen=True):
    """A trace or a task by its name."""

    id: int
    name: str
    task: str = ""


class MirrorPart(msgspec.Struct, frozen=True):
    """Failures behind which every agent is green: the first of them by name."""

    traces: tuple[CasePart, ...] = ()
    tasks: tuple[CasePart, ...] = ()


class AnswerPart(msgspec.Struct, frozen=True):
    """One distinct agent decision, or a state of having none, and its trials."""

    words: str
    count: int
    is_decision: bool = True


class UnstablePart(msgspec.Struct, frozen=True):
    """A task of which the trials do not agree; `agent` is "" for the whole system.

    `distinct` decisions were taken, of which `answers` are the most frequent.
    """

    task_id: int
    task: str
    agent: str
    verdict: str
    agreement: Rate
    distinct: int
    answers: tuple[AnswerPart, ...]
    distinct_inputs: int | None = None


class ConsistencyPart(msgspec.Struct, frozen=True):
    """How far trials agree end to end, in counts of tasks, and the least stable ones.

    `unstable` is how many pairs of a task and an agent, or the whole, are unstable.
    """

    tasks: int = 0
    by_verdict: dict[str, int] = {}
    stable_but_wrong: int = 0
    unstable: int = 0
    least_stable: tuple[UnstablePart, ...] = ()


class BranchPart(msgspec.Struct, frozen=True):
    """One way that `trials` took; `passed` is of those with a known outcome."""

    words: str
    trials: int
    passed: Rate


class ForkPart(msgspec.Struct, frozen=True):
    """A task of mixed outcome and the fork that its outcomes go with, if one does.

    Without a decisive fork there are no branches and `sentence` says why.
    `first_step` and `last_step` are where the trials stand at it.
    """

    task_id: int
    task: str
    passed: Rate
    forks: int
    sentence: str
    is_decisive: bool = False
    first_step: int | None = None
    last_step: int | None = None
    p: float | None = None
    branches: tuple[BranchPart, ...] = ()
    branches_left_out: int = 0


class ForksPart(msgspec.Struct, frozen=True):
    """The tasks of mixed outcome, `listed` of `mixed`; `decisive` have such a fork.

    `expected` of them, `low` to `high`, would have one by chance; `None` in documents
    that did not ask.
    """

    mixed: int = 0
    decisive: int = 0
    expected: float | None = None
    low: int = 0
    high: int = 0
    listed: tuple[ForkPart, ...] = ()


class MemoryPart(msgspec.Struct, frozen=True):
    """What became of facts of one source where they were needed.

    `fact` is the name of a declared fact, "" for all that exact reuse of values showed.
    `recalled` is of the decided ones; `others` counts the states that decide nothing
    and `places` where failures were localised.
    """

    source: str
    fact: str
    recalled: Rate
    lost: int
    contradicted: int
    others: dict[str, int] = {}
    places: dict[str, int] = {}


class LossPart(msgspec.Struct, frozen=True):
    """One fact that was lost or contradicted in one trace, and where it went."""

    trace_id: int
    trace: str
    source: str
    fact: str
    state: str
    sentence: str
    place: str = ""
    why: str = ""


class MemoriesPart(msgspec.Struct, frozen=True):
    """Memory over the project: in `traces` a fact is decided; `losses` are the newest."""

    traces: int = 0
    facts: tuple[MemoryPart, ...] = ()
    facts_left_out: int = 0
    losses: tuple[LossPart, ...] = ()


class RulePart(msgspec.Struct, frozen=True):
    """One rule that beats chance: the target inside of it and elsewhere."""

    words: str
    inside: Rate
    outside: Rate
    lift: float
    p: float
    is_smallest_p: bool
    tasks: int
    near: tuple[str, ...] = ()


class PatternPart(msgspec.Struct, frozen=True):
    """What one search found; `is_current` that it read the scores of this report."""

    target: str
    sentence: str
    rules: tuple[RulePart, ...]
    made_at: str
    is_current: bool


class NotePart(msgspec.Struct, frozen=True):
    """A reviewer's note on a trial: sound but wrong, or right by luck."""

    trace: CasePart
    kind: str
    outcome: str
    note: str
    by: str
    at: str
    step: int | None = None


class ContractPart(msgspec.Struct, frozen=True):
    """One contract in force, in our sentence and in that of its author.

    The counts are None where the scores are not those of this version.
    """

    name: str
    sentence: str
    own_words: str = ""
    held: int | None = None
    broken: int | None = None
    undecided: int | None = None
    not_applying: int | None = None


class DefinitionPart(msgspec.Struct, frozen=True):
    """What is asked of one agent, or of outcomes (`agent` is ""): who said so, when.

    `number` counts the versions; for outcomes `contracts` are expectations by task.
    """

    agent: str
    number: int
    by: str
    at: str
    note: str
    decision: str
    contracts: tuple[ContractPart, ...]
    left_out: int = 0


class AlonePart(msgspec.Struct, frozen=True):
    """The newest finished runs of one case of an agent in one regime.

    `finished` of those that were executed. `levels` counts the isolation they reached.
    `consistency` is "" before they are scored; `sentence` sets them beside the
    pipeline, "" where the case was not frozen from a recorded trace.
    """

    agent: str
    case: str
    regime: str
    batch: str
    finished: Rate
    breaches: int
    levels: dict[str, int]
    consistency: str = ""
    sentence: str = ""
    ended_at: str = ""


class RecallPart(msgspec.Struct, frozen=True):
    """The newest memory test of an agent in one sentence, "" where nothing is known."""

    agent: str
    batch: str
    finished: Rate
    sentence: str
    levels: dict[str, int] = {}


class AlonesPart(msgspec.Struct, frozen=True):
    """What replays say: `groups` and `recalls` count in verdicts, the newest first.

    `batches` with `runs` were ever planned, and of `ran` of them at least one run was
    executed; `has_more` groups are not listed.
    """

    batches: int = 0
    runs: int = 0
    ran: int = 0
    groups: tuple[AlonePart, ...] = ()
    has_more: bool = False
    recalls: tuple[RecallPart, ...] = ()


class AssessmentPart(msgspec.Struct, frozen=True):
    """Everything that is said of agents and trials. It is of the whole project.

    `agents` are the worst of `agent_count`. `colours` counts all of them.
    """

    standing: StandingPart
    sentence: str
    traces: OutcomesPart = OutcomesPart()
    tasks: OutcomesPart = OutcomesPart()
    maskings: tuple[MaskingPart, ...] = ()
    agent_count: int = 0
    colours: dict[str, int] = {}
    agents: tuple[AgentPart, ...] = ()
    mirror: MirrorPart = MirrorPart()
    consistency: ConsistencyPart = ConsistencyPart()
    forks: ForksPart = ForksPart()
    memory: MemoriesPart = MemoriesPart()
    alone: AlonesPart = AlonesPart()
    patterns: tuple[PatternPart, ...] = ()
    notes: tuple[NotePart, ...] = ()
    notes_left_out: int = 0
    definitions: tuple[DefinitionPart, ...] = ()
    definitions_left_out: int = 0
    unread: tuple[str, ...] = ()
