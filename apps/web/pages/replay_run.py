"""What the page of one run needs: its ending, proof, attempted effects and stub log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.agents.queries import agent_now
from apps.engine.replay.case import Case
from apps.engine.replay.run import UNKNOWN, Effect, Proof, TargetKind
from apps.engine.trace import Step, StepKind, StepStatus, ToolCall
from apps.replays.batch_queries import attempts_of, is_memory, stub_calls_of
from apps.replays.cases import case_of
from apps.replays.models import Run, RunAttempt
from apps.replays.results import effects_of, proof_of
from apps.replays.transitions import EXECUTED
from apps.reports.inert import visible
from apps.traces.codec import StoredBody
from apps.traces.queries import bodies_between, steps_of
from apps.verdicts.replayed import decisions_of
from apps.web.access import Place
from apps.web.pages.bodies import as_text
from apps.web.pages.replay_recall import TrialLine, trial_lines_of
from apps.web.pages.replay_words import (
    EFFECTS,
    LEVELS,
    RUN_WORDS,
    SOURCES,
    StateWord,
    ending_in_words,
    error_in_words,
    money_in_words,
    regime_words,
    seconds_in_words,
)
from apps.web.words import WITHOUT_DECISION, number_in_words

MOST_STEPS: Final = 1_000
MOST_SHOWN: Final = 4_000
MOST_PRINTED: Final = 64 * 1024
_ATTEMPTED: Final = "attempted: "
_OF_AN_ENDPOINT: Final = (
    "The model runs at its provider, and the harness runs the loop around it: no tool "
    "of the agent is called, and what the provider does with a request is not seen."
)
_OF_AN_AGENT_ELSEWHERE: Final = (
    "The agent runs elsewhere. Its tools are answered by stubs where it asks for them; "
    "what else it reaches there is not seen."
)


class EffectLine(msgspec.Struct, frozen=True):
    """An attempted side effect; `after` is the number of the step before it."""

    effect: Effect
    words: str
    held: str
    step: int | None
    after: int | None


class StubLine(msgspec.Struct, frozen=True):
    """A tool call and what answered it; `step` counts from 1."""

    step: int
    tool: str
    source: StateWord
    arguments: str
    answer: str
    is_error: bool
    note: str
    recording: int | None
    is_write: bool


class LeftOver(msgspec.Struct, frozen=True):
    """A recording that the run never asked for."""

    number: int
    tool: str
    arguments: str
    is_write: bool


class AttemptLine(msgspec.Struct, frozen=True):
    """One attempt at the run and how it ended."""

    row: RunAttempt
    ending: str
    why: str
    took_ns: int | None


class ProofPart(msgspec.Struct, frozen=True):
    """What shows that a run touched nothing real, and what does not show it."""

    proof: Proof
    is_same_input: bool
    versions: list[tuple[str, str]]
    limits: str
    not_seen: list[str]


class RunPage(msgspec.Struct, frozen=True):
    """One run."""

    place: Place
    run: Run
    word: StateWord
    tone: str
    title: str
    sentence: str
    regime: str
    level: str
    breaches: list[EffectLine]
    effects: list[EffectLine]
    proof: ProofPart | None
    stubs: list[StubLine]
    left_over: list[LeftOver]
    attempts: list[AttemptLine]
    printed: str
    decision: str
    is_decided: bool
    usage: str
    judged: list[TrialLine]
    more_steps: bool

    @property
    def is_unknown(self) -> bool:
        """Whether no record came back, so that nothing it did is known."""
        if self.proof is None:
            return self.run.state in EXECUTED
        return self.proof.proof.level == UNKNOWN


def run_page(place: Place, run: Run) -> RunPage:
    """One run with its log: a fixed number of queries."""
    steps, bodies = _recording(run)
    effects = _effects(run, steps)
    breaches = [one for one in effects if one.effect.is_breach]
    proof = proof_of(run)
    word = RUN_WORDS[run.state]
    decision, is_decided = _decision(run)
    return RunPage(
        place=place,
        run=run,
        word=word,
        tone="red" if breaches or run.has_breach else word.tone,
        title=_title(run, breaches),
        sentence=_sentence(run, word),
        regime=regime_words(run.group.regime),
        level=LEVELS.get(run.level, run.level),
        breaches=breaches,
        effects=effects,
        proof=_proof(run, proof) if proof else None,
        stubs=_stubs(steps, bodies) or _from_afar(run),
        left_over=_left_over(run, proof),
        attempts=[_attempt(row) for row in attempts_of(run)],
        printed=_written_out(run.printed),
        decision=decision,
        is_decided=is_decided,
        usage=_usage(run),
        judged=trial_lines_of(run) if is_memory(run.batch) else [],
        more_steps=bool(run.trace and run.trace.step_count > MOST_STEPS),
    )


def _recording(run: Run) -> tuple[list[Step], dict[int, StoredBody]]:
    if run.trace_id is None:
        return [], {}
    last = MOST_STEPS - 1
    return (
        steps_of(run.trace_id, first=0, last=last),
        bodies_between(run.trace_id, first=0, last=last),
    )


def _title(run: Run, breaches: Sequence[EffectLine]) -> str:
    """A breach comes before anything else that is said of a run."""
    word = RUN_WORDS[run.state]
    if not breaches:
        return f"This run {_verb(run.state)}{word.word}"
    first = breaches[0]
    more = len(breaches) - 1
    others = f" and {more} more" if more else ""
    return f"Breach: it tried to {first.words}{others}"


def _verb(state: str) -> str:
    return "" if state in {"finished", "failed", "timed_out"} else "is "


def _sentence(run: Run, word: StateWord) -> str:
    return f"{run.sentence} {word.meaning}" if run.sentence else word.meaning


def _decision(run: Run) -> tuple[str, bool]:
    # The last answer of a memory test is no decision.
    if run.trace_id is None or is_memory(run.batch):
        return "", False
    found = decisions_of(agent_now(run.batch.agent), [run.trace_id])
    conduct = found.get(run.trace_id)
    if conduct is None:
        return "", False
    if conduct.state == "decided":
        return conduct.shown or conduct.decision, True
    return WITHOUT_DECISION[conduct.state], False  # type: ignore[index]


def _usage(run: Run) -> str:
    # Calling an agent of one's own is a call too; which models it asked is not known.
    is_model = run.batch.target_version.target.kind == TargetKind.OPENAI
    noun = "model call" if is_model else "call"
    calls = f"{number_in_words(run.calls)} {noun if run.calls == 1 else noun + 's'}"
    if run.input_tokens is None or run.output_tokens is None:
        tokens = "tokens not known"
    else:
        tokens = (
            f"{number_in_words(run.input_tokens)} tokens in, "
            f"{number_in_words(run.output_tokens)} out"
        )
    currency = str(run.batch.estimate.get("currency", ""))
    money = "cost not known"
    if run.money is not None:
        money = money_in_words(run.money, currency)
    return f"{calls}, {tokens}, {money}"


def _effects(run: Run, steps: Sequence[Step]) -> list[EffectLine]:
    """The effects in order with their steps, as far as the recording shows these."""
    found = list(effects_of(run))
    end = len(steps) + len(found)
    found.sort(key=lambda one: end if one.after is None else one.after)
    places = [step.seq for step in steps if _is_attempt(step)]
    known: Sequence[int | None] = places
    if len(places) != len(found):
        known = [None] * len(found)
    return [
        EffectLine(
            effect=effect,
            words=EFFECTS[effect.kind],
            held=_held(effect),
            step=None if place is None else place + 1,
            after=_before(place, places),
        )
        for effect, place in zip(found, known, strict=True)
    ]


def _is_attempt(step: Step) -> bool:
    return step.kind is StepKind.OTHER and (step.name or "").startswith(_ATTEMPTED)


def _before(place: int | None, attempts: Sequence[int]) -> int | None:
    """The number of the step before an effect, other effects left out."""
    if place is None:
        return None
    before = place - 1
    while before in attempts:
        before -= 1
    return before + 1 if before >= 0 else None


def _held(effect: Effect) -> str:
    if effect.was_stopped is None:
        return "not known whether it was held back"
    return "held back" if effect.was_stopped else "not held back"


def _stubs(steps: Sequence[Step], bodies: Mapping[int, StoredBody]) -> list[StubLine]:
    return [
        _stub(step, step.call, bodies.get(step.seq))
        for step in steps
        if isinstance(step.call, ToolCall)
    ]


def _stub(step: Step, call: ToolCall, kept: StoredBody | None) -> StubLine:
    body = kept.body if kept else None
    said: Mapping[str, Any] = {}
    if body is not None and isinstance(body.attributes, dict):
        said = body.attributes
    answer = body.output if body is not None else None
    error = kept.error_message if kept else None
    return StubLine(
        step=step.seq + 1,
        tool=call.name,
        source=_source(said.get("stub")),
        arguments=_cut(body.input if body is not None else None),
        answer=_cut(error or answer),
        is_error=step.status is StepStatus.ERROR,
        note=str(said.get("note", "")),
        recording=said.get("recording"),
        is_write=bool(said.get("intended_write")),
    )


_NOT_KEPT: Final = StateWord("not kept", "circle", "", "Texts are not kept here.")


def _source(name: Any) -> StateWord:
    return SOURCES.get(name, _NOT_KEPT) if isinstance(name, str) else _NOT_KEPT


def _from_afar(run: Run) -> list[StubLine]:
    """Calls that came over the network to the stubs of a run without a recording."""
    lines = []
    for row in stub_calls_of(run):
        answer = row.answer if isinstance(row.answer, dict) else {}
        lines.append(
            StubLine(
                step=row.number,
                tool=row.tool,
                source=_source(answer.get("source")),
                arguments=_cut(row.arguments),
                answer=_cut(answer.get("error") or answer.get("result")),
                is_error=bool(answer.get("error")),
                note=str(answer.get("note", "")),
                recording=None,
                is_write=bool(answer.get("writes")),
            )
        )
    return lines


def _cut(value: Any) -> str:
    return "" if value is None else visible(as_text(value), limit=MOST_SHOWN)


def _written_out(text: str) -> str:
    r"""What was printed, control characters as `\x1b`: not every font has signs."""
    return visible(
        _CONTROLS.sub(lambda found: f"\\x{ord(found.group()):02x}", text),
        limit=MOST_PRINTED,
    )


_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _left_over(run: Run, proof: Proof | None) -> list[LeftOver]:
    row = run.group.case
    if proof is None or not proof.unconsumed or row is None:
        return []
    case: Case = case_of(row)
    return [
        LeftOver(
            number=place + 1,
            tool=case.calls[place].tool,
            arguments=_cut(case.calls[place].arguments),
            is_write=case.calls[place].writes,
        )
        for place in proof.unconsumed
        if 0 <= place < len(case.calls)
    ]


def _attempt(row: RunAttempt) -> AttemptLine:
    why = row.sentence or (error_in_words(row.error_kind) if row.error_kind else "")
    took = None if row.ended_at is None else row.ended_at - row.started_at
    took_ns = None if took is None else int(took.total_seconds() * 1e9)
    return AttemptLine(row, ending_in_words(row.ending), why, took_ns)


def _proof(run: Run, proof: Proof) -> ProofPart:
    return ProofPart(
        proof=proof,
        is_same_input=proof.input_before == proof.input_after,
        versions=sorted(proof.versions.items()),
        limits=", ".join(_limits(proof)),
        not_seen=[*proof.not_walled, *_not_seen(run)],
    )


def _not_seen(run: Run) -> Iterator[str]:
    kind = run.batch.target_version.target.kind
    if kind == TargetKind.OPENAI.value:
        yield _OF_AN_ENDPOINT
    elif kind == TargetKind.HTTP.value:
        yield _OF_AN_AGENT_ELSEWHERE


def _limits(proof: Proof) -> Iterator[str]:
    limits = proof.limits
    yield seconds_in_words(limits.seconds)
    yield f"{number_in_words(limits.model_calls)} model calls"
    yield f"{number_in_words(limits.tool_calls)} tool calls"
    yield f"{number_in_words(limits.output_tokens)} output tokens a call"
    yield f"{number_in_words(limits.memory_bytes // 1024**2)} MiB of memory"
    yield f"{number_in_words(limits.file_bytes // 1024**2)} MiB a file"
    yield f"{number_in_words(limits.processes)} processes"
