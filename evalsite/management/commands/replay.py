"""Run agents alone on frozen cases, without a database, a server or their settings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from apps.engine.replay.case import Case
from apps.engine.replay.cases_file import cases_as_jsonl
from evalsite.offline.asking import CannotAsk
from evalsite.offline.command import (
    INCOMPLETE,
    WRONG_CALL,
    flush,
    say,
    write,
    written,
)
from evalsite.offline.reading import STANDARD_INPUT, Complaint
from evalsite.offline.replay_command import (
    FAIL_ON,
    Answer,
    Call,
    asked_of,
    caps_of,
    cases_in_file,
    estimated,
    prices_in_file,
    run_cases,
    run_memory,
)
from evalsite.offline.replay_recorded import frozen_in, is_nameless
from evalsite.offline.replay_table import table_of
from evalsite.offline.replay_target import (
    CannotReplay,
    Granted,
    OfflineTarget,
    target_in_file,
    target_of_callable,
)
from evalsite.offline.replaying import (
    MOST_REPEATS,
    OfflinePlan,
    regimes_in,
)
from evalsite.offline.sentences import complaint_line, count, plain
from evalsite.walking import name_in_words

_REPEATS: Final = 5
_NOT_OF_MEMORY: Final = ("repeats", "regime", "wording", "contracts", "recorded")


class Command(BaseCommand):
    """Prints what agents do alone, as a table or as lines of JSON (--json).

    What is said meanwhile stands on the error stream. Ends with 0 when no case is of
    what --fail-on names, 1 when one is, 2 when it was called wrongly, and 3 when a run
    was not made, failed for what lies around the agent, or nothing was answered.
    """

    help = (
        "Run an agent alone on frozen cases, with its tools stubbed; needs no database "
        "and no server. Ends with 0 when no case is red or unstable (see --fail-on), 1 "
        "when one is, 2 when called wrongly, 3 when a run was not made, failed for "
        "what lies around the agent, or nothing was answered (before 1)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The target, the cases, the conditions, the caps, and how to print."""
        _add_what(parser)
        _add_how(parser)
        _add_allowed(parser)
        _add_printing(parser)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Print what was found; exits with the code."""
        try:
            code = _freeze(options) if options["freeze"] else _replay(options)
        except (CannotAsk, CannotReplay) as error:
            for sentence in error.problems:
                say(plain(sentence))
            code = WRONG_CALL
        sys.exit(code)


def _add_what(parser: CommandParser) -> None:
    parser.add_argument(
        "--target",
        type=Path,
        metavar="FILE",
        help="YAML that says how the agent is run",
    )
    parser.add_argument(
        "--cases", type=Path, metavar="FILE", help="cases as JSON lines"
    )
    parser.add_argument(
        "--contracts",
        type=Path,
        metavar="FILE",
        help="YAML with decisions and contracts of agents, as for compare --agents",
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILES",
        help="traces to say beside what the agent decided in the pipeline",
    )
    parser.add_argument(
        "--memory", type=Path, metavar="FILE", help="run the memory test of a JSON file"
    )
    parser.add_argument(
        "--freeze",
        type=Path,
        nargs="+",
        metavar="FILES",
        help="write a case for each input of --agent in these traces, and run nothing",
    )
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="whose inputs --freeze takes; “unnamed agent” is the one without a name",
    )


def _add_how(parser: CommandParser) -> None:
    parser.add_argument(
        "--repeats",
        type=_whole(MOST_REPEATS),
        metavar="N",
        help=f"runs of each case in each regime (default: {_REPEATS})",
    )
    parser.add_argument(
        "--regime",
        action="append",
        default=[],
        metavar="R",
        help="0 (the default), own, a temperature, or a paraphrase; several times",
    )
    parser.add_argument(
        "--wording",
        action="append",
        default=[],
        metavar="TEXT",
        help="another wording of the input that must not change the answer",
    )
    parser.add_argument("--seed", type=_whole(2**31), default=0, metavar="N")
    for name, what in (("calls", "model calls"), ("tokens", "tokens")):
        parser.add_argument(
            f"--max-{name}",
            type=_whole(10**12),
            metavar="N",
            help=f"the most {what} of all runs",
        )
    parser.add_argument(
        "--max-money", type=_money, metavar="X", help="in the currency of --prices"
    )
    parser.add_argument("--max-seconds", type=_whole(10**6), metavar="N")
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="YAML with prices of models"
    )


def _add_allowed(parser: CommandParser) -> None:
    for name, metavar, words in (
        ("allow", "HOST:PORT", "a host that is not public and may be called"),
        ("callable", "MODULE:NAME", "a callable that may run; alone it is the target"),
        ("command", "PATH", "a program that may run"),
        ("handler", "MODULE:NAME", "a handler of stubs that may run in the sandbox"),
    ):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=metavar, help=words
        )


def _add_printing(parser: CommandParser) -> None:
    parser.add_argument(
        "--json", action="store_true", help="a JSON object a line: runs, then a summary"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write there instead"
    )
    parser.add_argument(
        "--traces", type=Path, metavar="FILE", help="write the recordings of runs there"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what it would cost, and run nothing"
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="unstable",
        help="end with 1 for: red; unstable or red; also where it differs from the "
        "pipeline; never (default: %(default)s)",
    )


def _whole(most: int) -> Any:
    def number(text: str) -> int:
        if text.isascii() and text.isdigit() and 0 < int(text[:20] or "0") <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {most:,} is wanted")

    return number


def _money(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal(0)
    if not (found.is_finite() and 0 < found < 10**9):
        raise argparse.ArgumentTypeError("an amount above 0 is wanted")
    return found


def _freeze(options: dict[str, Any]) -> int:
    """Write the cases of an agent; the code of the command."""
    agent = options["agent"]
    if agent is None:
        raise CannotReplay("Say whose inputs are frozen: --agent NAME.")
    unread = []

    def hear(one: Complaint) -> None:
        say(complaint_line(one))
        if one.is_incomplete:
            unread.append(one)

    cases = frozen_in(options["freeze"], agent=agent, hear=hear)
    if not cases and not unread:
        called = "An agent without a name" if is_nameless(agent) else f"“{agent}”"
        raise CannotReplay(f"{called} acts in none of these traces.")
    _write(cases_as_jsonl(cases), options["output"])
    say(f"{count(len(cases), 'case')}.")
    return INCOMPLETE if unread else 0


def _replay(options: dict[str, Any]) -> int:
    """Run what a call names and print it; the code of the command."""
    call = _call(options)
    if options["dry_run"]:
        write(f"{estimated(call, options['memory']).sentence}\n")
        flush()
        return 0
    if options["memory"] is not None:
        answer = run_memory(call, options["memory"], tell=_tell)
    else:
        answer = run_cases(call, tell=_tell)
    if options["traces"] is not None:
        with written():
            options["traces"].write_bytes(answer.recordings)
    _write(_lines(answer, as_json=options["json"]), options["output"])
    return answer.code


def _call(options: dict[str, Any]) -> Call:
    if STANDARD_INPUT in options["recorded"]:
        raise CannotReplay("--recorded reads its files twice, so it takes no “-”.")
    if options["memory"] is not None:
        _refuse_ignored(options)
    target = _target(options)
    prices = prices_in_file(options["prices"])
    return Call(
        target=target,
        plan=OfflinePlan(
            cases=_cases(options, target),
            regimes=regimes_in(options["regime"], options["wording"]),
            wordings=tuple(options["wording"]),
            repeats=options["repeats"] or _REPEATS,
            seed=options["seed"],
            caps=caps_of(options, prices, target.model),
            prices=prices,
        ),
        asked=asked_of(options["contracts"]),
        recorded=tuple(options["recorded"]),
        fail_on=options["fail_on"],
    )


def _refuse_ignored(options: dict[str, Any]) -> None:
    """Refuse what a memory test would pass over, before anything is run."""
    given = [f"--{name}" for name in _NOT_OF_MEMORY if options[name]]
    if given:
        raise CannotReplay(
            f"A memory test has its own depths and repeats and judges facts, so {given[0]} "
            "would say nothing. Leave it out, or run the cases without --memory."
        )
    cases = [] if options["cases"] is None else cases_in_file(options["cases"])
    if len(cases) > 1:
        raise CannotReplay(
            f"A memory test begins from one case; {name_in_words(options['cases'])} has "
            f"{count(len(cases), 'case')}."
        )


def _target(options: dict[str, Any]) -> OfflineTarget:
    granted = Granted.of(
        hosts=options["allow"],
        callables=options["callable"],
        commands=options["command"],
        handlers=options["handler"],
    )
    if options["target"] is not None:
        return target_in_file(options["target"], granted)
    if len(options["callable"]) == 1:
        return target_of_callable(options["callable"][0], granted, Path.cwd())
    raise CannotReplay(
        "Say how the agent is run: --target FILE, or one --callable MODULE:NAME."
    )


def _cases(options: dict[str, Any], target: OfflineTarget) -> tuple[Case, ...]:
    if options["cases"] is not None:
        return cases_in_file(options["cases"])
    if options["memory"] is not None:
        agent = target.name if options["agent"] is None else options["agent"]
        return (Case(agent="" if is_nameless(agent) else agent),)
    raise CannotReplay("Say what the agent is given: --cases FILE, or --memory FILE.")


def _lines(answer: Answer, *, as_json: bool) -> Iterable[str]:
    if as_json:
        for line in answer.lines:
            yield json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        for text in table_of(answer.lines):
            yield f"{text}\n"


def _write(lines: Iterable[str], path: Path | None) -> None:
    with written():
        if path is None:
            for line in lines:
                write(line)
            flush()
        else:
            text = "".join(lines)
            path.write_bytes(text.encode("utf-8", "replace"))


def _tell(said: str | Complaint) -> None:
    say(complaint_line(said) if isinstance(said, Complaint) else plain(said))
