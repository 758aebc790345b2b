"""What `manage.py replay` prints for people: at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from apps.engine.memory_tests import Standing
from apps.engine.trials.project import UNNAMED
from evalsite.offline.document import in_short
from evalsite.offline.sentences import count, plain

WIDTH: Final = 100
_MARKS: Final = {"red": "x", "unstable": "!", "unknown": "?", "green": "+"}
_MOST_ANSWERS: Final = 5
_MOST_EFFECTS: Final = 5
_MOST_REASONS: Final = 3
_LONGEST: Final = 120


def table_of(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table, without line ends; the last value is the summary."""
    *runs, summary = lines
    target = summary["target"]
    model = f", {target['model']}" if target["model"] else ""
    yield from _wrapped(
        f"TARGET  {target['name']} ({target['kind']}{model}). Isolation: "
        f"{', '.join(summary['levels']) or 'nothing was run'}."
    )
    yield from _wrapped(_counts(summary))
    if summary["stopped"]:
        yield from _wrapped(f"Stopped: {summary['stopped']}")
    for sentence in summary["left_out"]:
        yield from _wrapped(f"Left out: {sentence}")
    for group in summary["groups"]:
        yield ""
        yield from _group(
            group, [one for one in runs if one["group"] == group["group"]]
        )
    if summary["memory"] is not None:
        yield ""
        yield from _memory(summary["memory"])
    yield ""
    for sentence in summary["isolation"]["not_walled"]:
        yield from _wrapped(f"Not walled: {sentence}")


def _counts(summary: dict[str, Any]) -> str:
    spent = summary["spent"]
    tokens = "" if spent["is_tokens_known"] else " with what is not known at its worst"
    return (
        f"{count(summary['runs'], 'run')}, {summary['finished']:,} finished; "
        f"{count(spent['calls'], 'call')}, {count(spent['tokens'], 'token')}{tokens}, "
        f"{_money(spent)}."
    )


def _money(spent: dict[str, Any]) -> str:
    if spent["is_money_known"]:
        return f"{spent['money']:.4f} {spent['currency']}"
    if not spent["money"]:
        return "cost not known"
    return f"at least {spent['money']:.4f} {spent['currency']}, the rest not known"


def _group(group: dict[str, Any], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    said = group["consistency"]
    agent = group["agent"] or UNNAMED
    name = group["case"] or agent
    verdict = "" if said is None else f", {said['label'].lower().replace('_', ' ')}"
    yield from _wrapped(
        f"{_MARKS[group['colour']]} {agent}: {name}; "
        f"{group['regime_in_words'].lower()}: {group['colour']}{verdict}.",
        indent=2,
    )
    for sentence in (
        *_answers(said),
        *_group_sentences(group),
        *_breaches(group, runs),
    ):
        yield from _wrapped(sentence, indent=6)


def _answers(said: dict[str, Any] | None) -> Iterator[str]:
    if said is None:
        return
    for answer in said["answers"][:_MOST_ANSWERS]:
        shown = answer["decision"] or "nothing"
        yield f"{in_short(answer['agreement'])}: {_short(shown)}"
    if len(said["answers"]) > _MOST_ANSWERS:
        yield f"… and {len(said['answers']) - _MOST_ANSWERS:,} other answers."
    for without in said["without"]:
        state = without["state"].replace("_", " ")
        yield f"{in_short(without['agreement'])}: no decision ({state})"


def _group_sentences(group: dict[str, Any]) -> Iterator[str]:
    yield from group["reasons"][:_MOST_REASONS]
    if group["recorded"] is not None:
        yield group["recorded"]["sentence"]
    for contract in group["contracts"]:
        yield contract["sentence"]
    failed = ", ".join(
        f"{kind.replace('_', ' ')} in {number:,}"
        for kind, number in sorted(group["errors"].items())
    )
    if failed:
        yield f"Did not finish: {failed} of {count(group['runs'], 'run')}."
    stubs = group["stubs"]
    told = [
        f"{stubs[name]:,} {word}"
        for name, word in (
            ("recorded", "as recorded"),
            ("static", "static"),
            ("handler", "by handlers"),
            ("miss", "missed"),
            ("intended_writes", "intended and not done"),
        )
        if stubs[name]
    ]
    if told:
        yield f"Tool calls: {', '.join(told)}."


def _breaches(group: dict[str, Any], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not group["breaches"]:
        return
    yield f"BREACH in {group['breaches']:,} of {count(group['runs'], 'run')}:"
    told = {
        f"{one['kind'].replace('_', ' ')}: {one['what']} ({_held(one['was_stopped'])})"
        for run in runs
        for one in run["effects"]
        if one["is_breach"]
    }
    for sentence in sorted(told)[:_MOST_EFFECTS]:
        yield f"- {sentence}"
    if len(told) > _MOST_EFFECTS:
        yield f"- and {len(told) - _MOST_EFFECTS:,} others"


def _held(was_stopped: Any) -> str:
    if was_stopped is None:
        return "not known whether it was held back"
    return "held back" if was_stopped else "not held back"


def _memory(memory: dict[str, Any]) -> Iterator[str]:
    yield "MEMORY"
    for sentence in memory["sentences"]:
        yield from _wrapped(sentence, indent=2)
    for point in memory["whole"]["points"]:
        yield from _wrapped(f"depth {point['depth']:>4}: {_recall(point)}", indent=4)
    if memory["breaches"]:
        yield from _wrapped(
            f"BREACH in {count(memory['breaches'], 'trial')}.", indent=2
        )


def _recall(point: dict[str, Any]) -> str:
    """What is known of one depth: nothing is said of it where nothing was answered."""
    if not point["trials"]:
        return "not tested"
    standing = point["standing"]
    if standing == Standing.UNANSWERED:
        return f"no answer in {count(point['trials'], 'trial')}"
    share = {"k": point["recalled"], "n": point["trials"], **point["interval"]}
    return f"{in_short(share)}, {standing.replace('_', ' ')}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _wrapped(text: str, *, indent: int = 0) -> Iterator[str]:
    yield from textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    )
