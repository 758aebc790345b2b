"""What `manage.py compare` prints for people: masking first, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evalsite.offline.document import in_short
from evalsite.offline.sentences import count, plain

WIDTH: Final = 100
MOST_TASKS: Final = 60
MOST_SINGLES: Final = 10
MOST_STEPS: Final = 8
_MOST_REASONS: Final = 3
# A number and its % stay on one line.
_HARD_BLANK: Final = "\u00a0"
_MARKS: Final = {"red": "x", "unstable": "!", "unknown": "?", "green": "+"}
_OUTCOMES: Final = {
    "green": "passed",
    "red": "failed",
    "mixed": "mixed",
    "unknown": "outcome unknown",
}


def table_of(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table, without line ends."""
    yield from _wrapped(document["masking"]["headline"])
    for one in document["masking"]["agents"][1:]:
        yield from _wrapped(one["sentence"])
    yield ""
    yield from _agents(document["agents"])
    yield from _tasks(document)
    yield from _gaps(document["gaps"])
    yield from _patterns(document["patterns"])


def _agents(agents: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not agents:
        return
    yield "AGENTS"
    for one in agents:
        verdict = one["verdict"]
        yield from _wrapped(
            f"{_MARKS[verdict]} {one['agent']}: {verdict}. "
            f"{count(one['traces'], 'trace')}, {count(one['tasks'], 'task')}.",
            indent=2,
        )
        for sentence in _agent_sentences(one):
            yield from _wrapped(sentence, indent=6)
    yield ""


def _agent_sentences(one: dict[str, Any]) -> Iterator[str]:
    for what in ("traces", "tasks"):
        share = one["masked"][what]
        if share["k"]:
            yield f"Masked in {in_short(share)} {what} that passed and exercise it."
    yield from one["reasons"][:_MOST_REASONS]


def _tasks(document: dict[str, Any]) -> Iterator[str]:
    tasks = document["tasks"]
    if not tasks:
        return
    counts = document["outcomes"]["tasks"]
    total = sum(counts.values()) - counts["single"]
    told = [
        f"{counts[colour]:,} {word}"
        for colour, word in _OUTCOMES.items()
        if counts[colour]
    ]
    yield f"TASKS  {joined([count(total, 'task'), *told])}"
    passed = in_short(document["outcomes"]["traces"])
    yield from _wrapped(f"Traces with a known outcome that passed: {passed}.", indent=2)
    if counts["single"]:
        yield from _singles([one for one in tasks if one["named_by"] == "nothing"])
    parted = sorted(filter(_is_told, tasks), key=_rank)
    if parted:
        yield ""
    for task in parted[:MOST_TASKS]:
        yield from _task(task)
    if len(parted) > MOST_TASKS:
        yield f"  … and {len(parted) - MOST_TASKS:,} more such tasks; --json has all."
    rest = len(tasks) - len(parted)
    if parted and rest:
        yield f"  {count(rest, 'other task')}: neither mixed nor unstable nor masked."
    yield ""


def _singles(tasks: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from _wrapped(
        f"{count(len(tasks), 'trace')} of no task with another trial, so insufficient "
        "to tell how stable anything is:",
        indent=2,
    )
    for task in tasks[:MOST_SINGLES]:
        [trial] = task["trials"]
        yield from _wrapped(f"{trial['id']} ({trial['outcome']})", indent=6)
    if len(tasks) > MOST_SINGLES:
        yield f"      … and {len(tasks) - MOST_SINGLES:,} more; --json has all."


def _is_told(task: dict[str, Any]) -> bool:
    unstable = {"drifting", "non_deterministic"}
    return (
        task["outcome"]["colour"] == "mixed"
        or task["consistency"]["verdict"] in unstable
        or any(one["verdict"] in unstable for one in task["agents"])
        or bool(task["masking"])
    )


def _rank(task: dict[str, Any]) -> tuple[bool, bool]:
    """Masked tasks first, then mixed ones; each group in the order of names."""
    return not task["masking"], task["outcome"]["colour"] != "mixed"


def _task(task: dict[str, Any]) -> Iterator[str]:
    outcome = task["outcome"]
    said = _OUTCOMES[outcome["colour"]]
    if outcome["n"]:
        said = f"{said}, {in_short(outcome)} passed"
    yield from _wrapped(f"{task['task']}: {said}", indent=2)
    for one in task["masking"]:
        yield from _wrapped(f"Masked: {one['sentence']}", indent=6)
    yield from _wrapped(_agreement("the whole", task["consistency"]), indent=6)
    for one in task["agents"]:
        if len(task["agents"]) > 1 and one["verdict"] != "insufficient":
            said_of = {**one["agreement"], "label": one["label"]}
            yield from _wrapped(_agreement(one["agent"], said_of), indent=6)
    yield from _fork(task)


def _agreement(name: str, found: dict[str, Any]) -> str:
    return f"{name}: {found['label']}, most frequent decision {in_short(found)}"


def _fork(task: dict[str, Any]) -> Iterator[str]:
    """The decisive fork with the step of each trial, or that there is none."""
    decisive = task["decisive"]
    if decisive["fork"] is None:
        yield from _wrapped(f"{decisive['sentence']}{_first(task)}", indent=6)
        return
    fork = task["forks"][decisive["fork"] - 1]
    number = f"{decisive['fork']} of {task['fork_count']:,}"
    there = [one for one in task["trials"] if one["id"] in fork["steps"]]
    where = _where(fork["steps"], there)
    chance = "" if decisive["by_chance"] is None else decisive["by_chance"]["sentence"]
    said = f"Decisive fork, {number}{where}: {fork['sentence']} {chance}"
    yield from _wrapped(said.rstrip(), indent=6)
    if not where:
        for one in there[:MOST_STEPS]:
            step = fork["steps"][one["id"]]
            at = "at its end" if step is None else f"at step {step}"
            yield from _wrapped(f"{one['id']}: {at}", indent=8)


def _first(task: dict[str, Any]) -> str:
    if task["first_fork"] is None:
        return ""
    return f" The first of {count(task['fork_count'], 'fork')} is at step {task['first_fork']}."


def _where(steps: dict[str, int | None], there: Sequence[dict[str, Any]]) -> str:
    """`, at steps 9, 11, -, 9 of trials 0, 1, 2, 3`; many together as a range.

    Empty where trials have no number of their own, so that only ids tell them apart.
    """
    known = [step for step in steps.values() if step is not None]
    if len(there) > MOST_STEPS:
        return f", at steps {min(known)} to {max(known)}" if known else ", at the end"
    numbers = {one["trial"] for one in there}
    if None in numbers or len(numbers) < len(there):
        return ""
    listed = joined([str(steps[one["id"]] or "-") for one in there])
    return f", at steps {listed} of trials {joined([str(o['trial']) for o in there])}"


def joined(words: Iterable[str]) -> str:
    """The words with commas."""
    return ", ".join(words)


def _gaps(gaps: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not gaps:
        return
    yield "GAPS"
    for one in gaps:
        yield from _wrapped(f"- {one['sentence']}", indent=2)
    yield ""


def _patterns(patterns: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "PATTERNS"
    for one in patterns.values():
        yield from _wrapped(one["sentence"], indent=2)
        for rule in one["found"]:
            yield from _wrapped(f"- {rule['sentence']}", indent=4)


def _wrapped(text: str, indent: int = 0) -> list[str]:
    """The text in lines of at most 100 columns, later ones two further in."""
    start = " " * indent
    lines = textwrap.wrap(
        plain(text).replace(" %", f"{_HARD_BLANK}%"),
        WIDTH,
        initial_indent=start,
        subsequent_indent=f"{start}  ",
        break_on_hyphens=False,
    )
    return [line.replace(_HARD_BLANK, " ") for line in lines]
