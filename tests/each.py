"""One rule held against many small cases in one test, which names each that breaks it.

A case of pytest's own costs several milliseconds before it begins. Where thousands ask
one pure function, that is most of what they cost.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_PARAM = type(pytest.param())


def for_each(
    names: str | Sequence[str],
    cases: Iterable[Any],
    *,
    ids: Callable[[Any], object] = reprlib.repr,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that takes the place of `pytest.mark.parametrize`.

    For rules that leave nothing behind: fixtures are the same for all cases.

    Args:
        names: Of the arguments of the rule.
        cases: A value for each case; several names take a sequence of values. Those of
            `pytest.param` keep their ids.
        ids: By what another case is named when it breaks the rule.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    held = [_named(case, len(wanted), ids) for case in cases]
    assert held, "A rule without a case shows nothing."

    def decorate(rule: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(rule)
        def held_against_all(*args: Any, **given: Any) -> None:
            broken = []
            for case, values in held:
                try:
                    rule(*args, **given, **dict(zip(wanted, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    broken.append(f"{case}: {type(error).__name__}: {error}")
            assert not broken, "\n".join([f"{len(broken)} of {len(held)}:", *broken])

        signature = inspect.signature(rule)
        left = [one for key, one in signature.parameters.items() if key not in wanted]
        held_against_all.__signature__ = signature.replace(parameters=left)
        return held_against_all

    return decorate


def _named(
    case: Any, count: int, ids: Callable[[Any], object]
) -> tuple[object, Sequence[Any]]:
    if isinstance(case, _PARAM):
        assert not case.marks, "A case with marks is one of pytest's own."
        return case.id or ids(case.values), case.values
    return ids(case), case if count > 1 else [case]
