"""What is made of a run after it has ended, and how its end reads in a sentence."""

from __future__ import annotations

import os
import signal
from typing import Any, Final

import msgspec

from apps.engine.replay.case import hash_of
from apps.engine.replay.run import EffectKind, Ending, ErrorKind, RunError
from apps.isolation.masking import Mask
from apps.isolation.sandbox.ledger import Ledger
from apps.isolation.sandbox.levels import Reached
from apps.isolation.sandbox.order import Isolated, SandboxOrder, failed
from apps.isolation.sandbox.printed import HIDDEN, Printed, visible

_LONGEST_SENTENCE: Final = 1_000
_MOST_THREADS: Final = 20
_TOLD_KINDS: Final = frozenset(
    {
        *(ErrorKind.TARGET, ErrorKind.BAD_ANSWER, ErrorKind.TOO_LARGE),
        *(ErrorKind.LIMIT, ErrorKind.CRASHED, ErrorKind.STOPPED),
    }
)
_WAITS: Final = (
    "It had written nothing to its standard output: one that reads its standard input "
    "to the end waits for ever, because the case is one line and the input stays open."
)
_EMPTY: Final[dict[str, Any]] = {
    "input": None,
    "messages": [],
    "context": {},
    "tools": [],
}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the first process of a run says of the agent's at the end."""

    status: int
    left: tuple[str, ...] = ()
    peak_bytes: int | None = None
    cpu_seconds: float | None = None


def exit_code(report: Report | None) -> int | None:
    """The exit code, negative where a signal ended it; `None`: not known."""
    return os.waitstatus_to_exitcode(report.status) if report else None


def told_error(told: dict[str, Any]) -> RunError | None:
    """The error in the last line of a callable; what is none of ours is the target's."""
    match told.get("error"):
        case None:
            return None
        case [str(kind), str(sentence)] if kind in _TOLD_KINDS:
            return failed(ErrorKind(kind), visible(sentence[:_LONGEST_SENTENCE]))
    return failed(ErrorKind.TARGET, "The agent ended with an error that says nothing.")


def crashed(order: SandboxOrder, report: Report | None) -> RunError:
    """The error of a process that ended without its last line."""
    code = exit_code(report)
    if report is None or code is None:
        return failed(
            ErrorKind.CRASHED, f"{order.name} ended, and nothing is known of its end."
        )
    spent = report.cpu_seconds or 0.0
    if spent > int(order.limits.seconds) * 4:
        return failed(
            ErrorKind.LIMIT, f"{order.name} used more than {spent:.0f} s of computing."
        )
    if code >= 0:
        return failed(
            ErrorKind.CRASHED,
            f"{order.name} ended its process with exit code {code} before it answered.",
        )
    return failed(
        ErrorKind.CRASHED,
        f"{order.name} was ended by the signal {_name(-code)} before it answered.",
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is over, as it was seen from outside.

    `final` is the last line of a callable or the answer of a command, `said` what a
    command printed on its standard output besides. `from_outside` is why and how we
    ended it.
    """

    order: SandboxOrder
    reached: Reached
    final: dict[str, Any] | None
    report: Report | None
    from_outside: tuple[Ending, RunError] | None
    ledger: Ledger
    printed: Printed
    said: bytes
    input_before: str
    start_ns: int
    end_ns: int


def input_hash(given: dict[str, Any]) -> str:
    """SHA-256 of what an agent may not change of what it is given."""
    return hash_of(
        {
            name: empty if given.get(name) is None else given[name]
            for name, empty in _EMPTY.items()
        }
    )


def isolated(run: Ended) -> Isolated:
    """The run as a value, secrets hidden; the last effects go into its ledger."""
    output, state, error = _outcome(run)
    ending = Ending.FINISHED
    if error is not None:
        ending = run.from_outside[0] if run.from_outside else Ending.FAILED
    if run.report:
        for name in run.report.left:
            run.ledger.told(
                EffectKind.LEFT_RUNNING,
                f"left {visible(name)} running",
                was_stopped=True,
            )
    after = _input_after(run)
    secrets = Mask(run.order.secrets, HIDDEN)
    sentence = error.sentence if error else ""
    shown = run.printed.text()
    told = [one.what for one in run.ledger.all()]
    hidden, has_leak = secrets.hidden([output, state, sentence, shown, told])
    if has_leak:
        what = "gave out a secret that it was given"
        run.ledger.told(EffectKind.LEAK, what, was_stopped=True)
    return Isolated(
        ending=ending,
        output=hidden[0],
        state=hidden[1],
        error=error and msgspec.structs.replace(error, sentence=hidden[2]),
        effects=tuple(
            msgspec.structs.replace(one, what=secrets.hidden(one.what)[0])
            for one in run.ledger.all()
        ),
        printed=hidden[3],
        reached=run.reached,
        input_before=run.input_before,
        input_after=after,
        exit_code=exit_code(run.report),
        peak_bytes=run.report.peak_bytes if run.report else None,
        cpu_seconds=run.report.cpu_seconds if run.report else None,
        start_ns=run.start_ns,
        end_ns=run.end_ns,
    )


def _outcome(run: Ended) -> tuple[Any, Any, RunError | None]:
    """Output and state, or why there are none."""
    if run.from_outside is not None:
        return None, None, _with_hint(run, run.from_outside[1])
    if run.final is None and run.order.is_command:
        return _said(run)
    if run.final is None:
        return None, None, crashed(run.order, run.report)
    error = told_error(run.final)
    if error is not None:
        if error.kind == ErrorKind.LIMIT and "memory" in error.sentence:
            run.ledger.told(
                EffectKind.MEMORY,
                "asked for more memory than its limit",
                was_stopped=True,
                is_breach=False,
            )
        return None, None, error
    return run.final.get("output"), run.final.get("state"), None


def _with_hint(run: Ended, error: RunError) -> RunError:
    """The error; of a command that said nothing in its time with what it may wait for."""
    is_silent = not run.said.strip() and not run.ledger.after
    if error.kind != ErrorKind.TIMED_OUT or not run.order.is_command or not is_silent:
        return error
    return msgspec.structs.replace(error, sentence=f"{error.sentence} {_WAITS}")


def _said(run: Ended) -> tuple[Any, Any, RunError | None]:
    """What a command printed is its output, if it ended well."""
    code = exit_code(run.report)
    if code is None or code < 0:
        return None, None, crashed(run.order, run.report)
    if code:
        sentence = f"{run.order.name} ended with exit code {code}."
        return None, None, failed(ErrorKind.TARGET, sentence)
    most = run.order.limits.answer_bytes
    if len(run.said) > most:
        sentence = f"{run.order.name} printed more than {most:,} bytes as its answer."
        return None, None, failed(ErrorKind.TOO_LARGE, sentence)
    return run.said.decode("utf-8", "replace").strip(), None, None


def _input_after(run: Ended) -> str:
    """The hash of what the process held of its input in the end; "" where unknown."""
    if run.order.is_command:
        # It got a copy as bytes; what it does with them cannot come back.
        return input_hash(run.order.given)
    if run.final is None or "held" not in run.final:
        return ""
    threads = run.final.get("threads")
    for name in threads[:_MOST_THREADS] if isinstance(threads, list) else ():
        run.ledger.told(
            EffectKind.LEFT_RUNNING,
            f"left the thread {visible(str(name)[:100])} running",
            was_stopped=True,
            is_breach=False,
        )
    held = run.final["held"]
    after = input_hash(held) if isinstance(held, dict) else "no JSON"
    if after != run.input_before:
        run.ledger.told(
            EffectKind.INPUT_CHANGED,
            "changed the input that it was given",
            was_stopped=True,
        )
    return after
