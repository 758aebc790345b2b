"""What one call of `manage.py replay` does: freeze cases, or run what it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from apps.engine.formats.evalsite_writer import dump
from apps.engine.memory_tests import MemoryTest
from apps.engine.replay.case import Case
from apps.engine.replay.cases_file import LONGEST_LINE, cases_from_jsonl
from apps.engine.replay.estimates import Estimate
from apps.engine.replay.estimates import TargetSettings as CostSettings
from apps.engine.replay.prices import BadPrices, PriceTable
from apps.engine.replay.run import Proof
from apps.engine.trials import Asked
from apps.replays.memory_costs import memory_estimate, most_calls
from apps.replays.prices_file import table_in
from evalsite.offline.asking import asked_in_file
from evalsite.offline.command import FOUND, INCOMPLETE
from evalsite.offline.reading import Complaint
from evalsite.offline.replay_budget import OfflineCaps, Spent
from evalsite.offline.replay_memory import (
    DoneTrial,
    MemoryFound,
    memory_document,
    remembered,
    test_in_file,
    trial_document,
    trial_recording,
)
from evalsite.offline.replay_recorded import Recorded, recorded_in
from evalsite.offline.replay_results import (
    ScoredGroup,
    group_document,
    run_document,
    scored_groups,
)
from evalsite.offline.replay_target import CannotReplay, OfflineTarget, text_in
from evalsite.offline.replaying import (
    DoneRun,
    OfflinePlan,
    estimate_of,
    groups_of,
    replayed,
)
from evalsite.walking import name_in_words

VERSION: Final = 1
FAIL_ON: Final = ("red", "unstable", "differs", "never")
Tell = Callable[[str | Complaint], None]
_COLOURS: Final = {
    "never": frozenset[str](),
    "red": frozenset({"red"}),
    "unstable": frozenset({"red", "unstable"}),
    "differs": frozenset({"red", "unstable"}),
}
_MICROS: Final = 1_000_000


class Call(msgspec.Struct, kw_only=True):
    """One call: what is run, what is asked of it, and whether recorded files were read."""

    target: OfflineTarget
    plan: OfflinePlan
    asked: Asked = Asked()
    recorded: tuple[Path, ...] = ()
    fail_on: str = "unstable"
    is_unread: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a call found: a value for each run with the summary last, and recordings."""

    lines: list[dict[str, Any]]
    code: int
    recordings: bytes = b""


def cases_in_file(path: Path) -> tuple[Case, ...]:
    """The cases of a file of JSON lines; raises `CannotReplay` for each bad line."""
    named = name_in_words(path)
    try:
        with path.open("rb") as stream:
            read = cases_from_jsonl(
                iter(lambda: stream.readline(LONGEST_LINE + 2), b"")
            )
    except OSError as error:
        raise CannotReplay(f"{named} cannot be opened: {error.strerror}.") from None
    if read.refused:
        raise CannotReplay(
            *[f"{named}, line {one.line}: {one.reason}" for one in read.refused[:20]]
        )
    if not read.cases:
        raise CannotReplay(f"{named} holds no case.")
    return read.cases


def prices_in_file(path: Path | None) -> PriceTable:
    """The prices of a YAML file, none without one; raises `CannotReplay`."""
    if path is None:
        return PriceTable()
    try:
        return table_in(text_in(path))
    except BadPrices as error:
        raise CannotReplay(f"{name_in_words(path)}: {error}") from None


def caps_of(options: dict[str, Any], prices: PriceTable, model: str) -> OfflineCaps:
    """The caps of a call; raises `CannotReplay` for money without a price."""
    money: Decimal | None = options["max_money"]
    if money is not None and prices.of(model) is None:
        raise CannotReplay(
            "Money can be capped only where a price of the model is known: name a file "
            "with --prices."
        )
    return OfflineCaps(
        calls=options["max_calls"],
        tokens=options["max_tokens"],
        micros=None if money is None else int(money * _MICROS),
        seconds=options["max_seconds"],
    )


def asked_of(path: Path | None) -> Asked:
    """What a file of contracts asks, nothing without one; raises `CannotAsk`."""
    return Asked() if path is None else asked_in_file(path)[0]


def run_cases(call: Call, *, tell: Tell) -> Answer:
    """Run every case of a call; `tell` gets a sentence now and then."""
    recorded = _recorded(call, tell)
    _, left_out = groups_of(call.plan)
    tell(f"Before: {estimate_of(call.plan, call.target).sentence}")
    progress = _Progress(tell)
    found = replayed(call.plan, call.target, hear=progress.hear)
    groups = scored_groups(found, call.asked, call.target, recorded)
    summary = {
        **_summary(call, [one.ran for one in found.runs], found.spent, found.stopped),
        "left_out": list(left_out),
        "groups": [group_document(one) for one in groups],
        "memory": None,
    }
    code = _code(call, groups)
    return Answer(
        lines=[*_run_lines(groups), {**summary, "exit_code": code}],
        code=code,
        recordings=_recordings(groups),
    )


def estimated(call: Call, memory: Path | None) -> Estimate:
    """What a call may need, by its cases or its memory test; raises `CannotReplay`."""
    if memory is None:
        groups_of(call.plan)
        return estimate_of(call.plan, call.target)
    test = test_in_file(memory)
    return _memory_estimate(_with_room(call, test), test)


def run_memory(call: Call, path: Path, *, tell: Tell) -> Answer:
    """Run a memory test; `tell` gets a sentence now and then."""
    test = test_in_file(path)
    call = _with_room(call, test)
    case = call.plan.cases[0]
    tell(f"Before: {_memory_estimate(call, test).sentence}")
    progress = _Progress(tell)
    found = remembered(test, case, call.target, plan=call.plan, hear=progress.hear)
    summary = {
        **_summary(call, [one.ran for one in found.trials], found.spent, found.stopped),
        "left_out": [],
        "groups": [],
        "memory": memory_document(found),
    }
    code = _memory_code(call, found)
    lines = [trial_document(one) for one in found.trials]
    return Answer(
        lines=[*lines, {**summary, "exit_code": code}],
        code=code,
        recordings=b"".join(
            dump(trial_recording(one, case, call.target))
            for one in found.trials
            if one.was_executed
        ),
    )


def _with_room(call: Call, test: MemoryTest) -> Call:
    """The call with leave for as many model calls as its longest conversation has."""
    limits = call.target.limits
    most = max(limits.model_calls, most_calls(test))
    target = msgspec.structs.replace(
        call.target, limits=msgspec.structs.replace(limits, model_calls=most)
    )
    return msgspec.structs.replace(call, target=target)


def _memory_estimate(call: Call, test: MemoryTest) -> Estimate:
    target, case = call.target, call.plan.cases[0]
    return memory_estimate(
        test,
        settings=CostSettings(
            kind=target.kind, model=target.model, limits=target.run_limits
        ),
        base=len(msgspec.json.encode((case.messages, case.tools))),
        prices=call.plan.prices,
    )


def _run_lines(groups: Sequence[ScoredGroup]) -> list[dict[str, Any]]:
    return [run_document(one) for group in groups for one in group.runs]


def _recordings(groups: Sequence[ScoredGroup]) -> bytes:
    """The runs that were executed, as a file of traces."""
    return b"".join(
        dump(one.trace)
        for group in groups
        for one in group.runs
        if one.run.was_executed
    )


def _recorded(call: Call, tell: Tell) -> Recorded | None:
    if not call.recorded:
        return None

    def hear(one: Complaint) -> None:
        call.is_unread |= one.is_incomplete
        tell(one)

    agents = {case.agent for case in call.plan.cases}
    return recorded_in(call.recorded, call.asked, agents=agents, hear=hear)


def _summary(
    call: Call, rans: Sequence[Any], spent: Spent, stopped: str
) -> dict[str, Any]:
    target = call.target
    proofs: list[Proof] = [one.proof for one in rans]
    return {
        "type": "summary",
        "evalsite_replay": VERSION,
        "target": {
            "name": target.name,
            "kind": target.kind.value,
            "model": target.model or None,
        },
        "runs": len(rans),
        "finished": sum(one.error is None for one in rans),
        "breaches": sum(one.has_breach for one in rans),
        "levels": sorted({one.level for one in proofs}),
        "isolation": {
            "wall": _distinct([one.wall for one in proofs]),
            "not_walled": _distinct([one.not_walled for one in proofs]),
            "real_calls": sum(one.real_calls for one in proofs),
        },
        "spent": {
            "calls": spent.calls,
            "tokens": spent.tokens,
            "is_tokens_known": spent.is_tokens_known,
            "money": spent.micros / _MICROS,
            "currency": call.plan.prices.currency,
            "is_money_known": spent.is_money_known,
        },
        "stopped": stopped or None,
        "fail_on": call.fail_on,
    }


def _distinct(found: Sequence[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(sentence for one in found for sentence in one))


def _code(call: Call, groups: Sequence[ScoredGroup]) -> int:
    if call.is_unread or any(one.is_incomplete for one in groups):
        return INCOMPLETE
    wanted = _COLOURS[call.fail_on]
    is_bad = any(one.colour in wanted for one in groups)
    if call.fail_on == "differs":
        is_bad = is_bad or any(one.differs for one in groups)
    return FOUND if is_bad else 0


def _memory_code(call: Call, found: MemoryFound) -> int:
    if found.is_incomplete:
        return INCOMPLETE
    is_lost = bool(found.is_uncertain) and call.fail_on != "red"
    is_bad = bool(found.breaches) or is_lost
    return FOUND if is_bad and call.fail_on != "never" else 0


class _Progress:
    """Says how far it is after the first run and then each tenth."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._done = 0

    def hear(self, one: DoneRun | DoneTrial) -> None:
        self._done += 1
        error = one.ran.error
        if error is not None:
            self._tell(f"Run {self._done:,}: {error.sentence}")
        elif self._done % 10 == 0:
            self._tell(f"{self._done:,} runs are done.")
