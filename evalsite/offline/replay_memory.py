"""Memory tests out of files: a fact is planted, buried and asked for, at each depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from apps.engine.agent_names import agent_key
from apps.engine.contracts.spec import BadDefinition
from apps.engine.memory_tests import (
    Burial,
    Curve,
    Heard,
    MemoryTest,
    NotOffered,
    PlannedTrial,
    Probed,
    Standing,
    TrialRecord,
    acts_of,
    burial_from,
    decoded_memory_test,
    is_untried,
    planned,
    probed_in,
    rule_of,
    run_trial,
    sentences_of,
)
from apps.engine.replay.case import Case
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.run import Ran, TargetKind
from apps.engine.trace import Trace
from apps.engine.trials.project import UNNAMED
from apps.isolation.asked_turns import AskedTurns
from evalsite.offline.replay_budget import Spent
from evalsite.offline.replay_driving import Drivers, OneRun
from evalsite.offline.replay_results import SAYS_NOTHING
from evalsite.offline.replay_stub_server import stub_server
from evalsite.offline.replay_target import CannotReplay, OfflineTarget, text_in
from evalsite.offline.replaying import NOT_EXECUTED, OfflinePlan, purse_of
from evalsite.walking import name_in_words


class DoneTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation: what happened, and what it shows of each fact."""

    trial: PlannedTrial
    ran: Ran
    probed: tuple[Probed, ...]
    is_untried: bool

    @property
    def was_executed(self) -> bool:
        """Whether it was run to an end of its own, so that it counts."""
        return self.ran.ending not in NOT_EXECUTED


class MemoryFound(msgspec.Struct, frozen=True, kw_only=True):
    """All trials of a test, and the curve that they make."""

    test: MemoryTest
    trials: tuple[DoneTrial, ...]
    burial: Burial
    spent: Spent
    stopped: str = ""

    @property
    def is_uncertain(self) -> bool | None:
        """Whether recall is not certain at some depth; `None` where nothing is known."""
        if self.is_unanswered:
            return None
        return any(
            point.standing is Standing.UNCERTAIN for point in self.burial.whole.points
        )

    @property
    def is_unanswered(self) -> bool:
        """Whether no question of the test has an answer, so that nothing is known."""
        return self.burial.is_unanswered or not self.burial.probed

    @property
    def is_incomplete(self) -> bool:
        """Whether a trial was not made, failed for what lies around, or none answered."""
        return self.is_unanswered or any(
            one.is_untried
            or (one.ran.error is not None and one.ran.error.kind in SAYS_NOTHING)
            for one in self.trials
        )

    @property
    def breaches(self) -> int:
        """How many trials tried something outside of what they were given."""
        return sum(one.ran.has_breach for one in self.trials)


def test_in_file(path: Path) -> MemoryTest:
    """The test of a JSON file; raises `CannotReplay`."""
    named = name_in_words(path)
    try:
        value = msgspec.json.decode(text_in(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise CannotReplay(f"{named} is no JSON: {error}.") from None
    try:
        test = decoded_memory_test(value)
        planned(test)
    except BadDefinition as error:
        where = f"“{error.field}”: " if error.field else ""
        raise CannotReplay(f"{named}: {where}{error}") from None
    return test


def remembered(
    test: MemoryTest,
    case: Case,
    target: OfflineTarget,
    *,
    plan: OfflinePlan,
    hear: Callable[[DoneTrial], None],
) -> MemoryFound:
    """Make every trial of a test; `hear` gets each as it ends. Raises `CannotReplay`."""
    with ExitStack() as stack:
        purse = purse_of(plan, target)
        server = stack.enter_context(stub_server())
        talks = _Talks(test, case, target, Drivers(target, purse=purse, server=server))
        pool = stack.enter_context(ThreadPoolExecutor(target.concurrency))
        stack.callback(purse.stop)
        done = []
        for one in as_completed(
            [pool.submit(talks.made, trial) for trial in planned(test).trials]
        ):
            done.append(one.result())
            hear(done[-1])
    done.sort(key=lambda one: (one.trial.depth, one.trial.repeat))
    tried = [one for one in done if not one.is_untried]
    return MemoryFound(
        test=test,
        trials=tuple(done),
        burial=burial_from(
            test,
            [probed for one in tried for probed in one.probed],
            untried=len(done) - len(tried),
        ),
        spent=purse.spent,
        stopped=purse.sentence,
    )


class _Talks:
    """Holds the conversations of a test with its target.

    A stateful callable is talked with in one process; every other target is run anew
    for each turn, with what was said so far and its own state.
    """

    def __init__(
        self, test: MemoryTest, case: Case, target: OfflineTarget, drivers: Drivers
    ) -> None:
        self._test = test
        self._case = case
        self._target = target
        self._drivers = drivers

    def made(self, trial: PlannedTrial) -> DoneTrial:
        """One trial of its own; raises `CannotReplay` where a summary is not offered."""
        try:
            ran, record = self._talk(trial)
        except NotOffered as error:
            raise CannotReplay(str(error)) from None
        if record is None:
            # It counts: its questions have no answer.
            unbegun = Heard(act=acts_of(trial)[0], error=ran.error)
            record = TrialRecord(trial=trial, heard=(unbegun,))
        return DoneTrial(
            trial=trial,
            ran=ran,
            probed=tuple(probed_in(self._test, record)),
            is_untried=is_untried(record),
        )

    def _talk(self, trial: PlannedTrial) -> tuple[Ran, TrialRecord | None]:
        from_case = self._order(self._case)
        if self._target.kind is TargetKind.CALLABLE:
            return self._drivers.talk(from_case, lambda talk: run_trial(trial, talk))
        asked = AskedTurns(
            self._case, lambda case: self._drivers.run(self._order(case))
        )
        is_model = self._target.kind is TargetKind.OPENAI
        conversation = asked.as_model() if is_model else asked.as_agent()
        record = run_trial(trial, conversation)
        return asked.ran(record), record

    def _order(self, case: Case) -> OneRun:
        return OneRun(case=case, frozen=self._case)


def trial_recording(one: DoneTrial, case: Case, target: OfflineTarget) -> Trace:
    """The recording of a trial, with all of its turns in one run."""
    name = f"{agent_key(case.agent) or UNNAMED}, memory test"
    return trace_of(
        case,
        one.ran,
        RunTitle(
            name=f"{name}, depth {one.trial.depth}, trial {one.trial.repeat}",
            task=f"replay: {name}, depth {one.trial.depth}",
            trial=one.trial.repeat,
            target=target.kind,
            target_name=target.name,
        ),
    )


def memory_document(found: MemoryFound) -> dict[str, Any]:
    """What a test shows, as JSON."""
    burial = found.burial
    return {
        "sentences": list(sentences_of(burial)),
        "rule": rule_of(burial),
        "whole": _curve(burial.whole),
        "facts": [_curve(one) for one in burial.facts],
        "is_uncertain": found.is_uncertain,
        "is_unanswered": found.is_unanswered,
        "breaches": found.breaches,
        "errors": dict(
            Counter(one.ran.error.kind.value for one in found.trials if one.ran.error)
        ),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "name": curve.name,
        "first_uncertain": curve.first_uncertain,
        "points": msgspec.to_builtins(curve.points),
    }


def trial_document(one: DoneTrial) -> dict[str, Any]:
    """One trial as JSON."""
    error = one.ran.error
    return {
        "type": "trial",
        "depth": one.trial.depth,
        "repeat": one.trial.repeat,
        "ending": one.ran.ending.value,
        "error": None if error is None else msgspec.to_builtins(error),
        "is_untried": one.is_untried,
        "probed": msgspec.to_builtins(one.probed),
        "level": one.ran.proof.level,
        "has_breach": one.ran.has_breach,
        "effects": msgspec.to_builtins(one.ran.effects),
    }
