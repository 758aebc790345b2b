"""Expressions that grow what they are given, and texts that are slow to look for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apps.engine.contracts import BadDefinition
from apps.engine.contracts.budget import Budget, Undecided, Value
from apps.engine.contracts.expressions import Expression
from tests.engine.contracts.stories import cel, contract, only, story, used

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60
MEGABYTES = 900

NUMBERS = {"l": list(range(4_000))}
FEW = {"l": list(range(200))}
SLOW = {"s": "a" * 3_000_000, "t": "a" * 1_500_000 + "b"}

GROWING = [
    # Four times as large with each map, ten times over: compared part by part.
    ("[step.s]" + ".map(a,[a,a,a,a])" * 24 + ".all(z, z == z)", {"s": "x"}),
    ("[1].map(a,[a,a])" + ".map(a,[a,a])" * 28 + ".exists(z, z == z)", {}),
    ('[{"a": step.s, "b": step.s}]' + ".map(a,[a,a,a,a])" * 24 + " == []", {"s": "x"}),
    (
        "[step.l.map(x, step.l)].all(A, [A.map(x, A)].all(B, "
        "B.map(x, B) == B.map(x, B)))",
        FEW,
    ),
    # A variable of the same name as one outside does not hide where it comes from.
    ("[step.l].all(A, step.l.map(v, [A].map(A, A)) == step.l.map(v, A))", NUMBERS),
    ("step.l.map(x, step.l).map(y, step.l).size() > 0", NUMBERS),
    ("step.l.map(x, true, step.l).size() > 0", NUMBERS),
    ("step.s.contains(step.t)", SLOW),
    ("step.s.contains(step.t) || step.s.contains((step.t))", SLOW),
    ('step.s.contains("' + "a" * 900 + 'b" + step.t)', SLOW),
]

PROGRAM = """
import resource, sys
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (50, 50))
from tests.engine.contracts.test_costs import GROWING, outcome
for source, step in GROWING:
    print(outcome(source, step))
# Of this program alone: the other count begins with what the one before it had.
lines = open("/proc/self/status").read().splitlines()
print(next(int(one.split()[1]) // 1024 for one in lines if one.startswith("VmHWM")))
"""


def outcome(source, step):
    """True, False, or the sentence why neither."""
    try:
        return Expression(source).holds(Value(step, decimals=True), Budget())
    except Undecided as error:
        return str(error)


def test_no_expression_makes_a_process_hang_grow_or_die():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    *said, megabytes = done.stdout.splitlines()
    assert said == ["the expression may need too much work on this step"] * len(GROWING)
    assert int(megabytes) < MEGABYTES


@pytest.mark.parametrize(
    ("source", "step", "holds"),
    [
        (
            "step.l.map(x, x.id).exists(i, i == 3)",
            [{"id": n} for n in range(900)],
            True,
        ),
        ("step.l.map(x, [x.id, x.id]).size() == 900", [{"id": 1}] * 900, True),
        ("step.l.filter(x, x in [1, 2, 3]).size() == 3", list(range(900)), True),
        ("step.l.map(x, x.o.map(y, y.p)).size() > 900", [{"o": [{"p": 1}]}] * 9, False),
        ("step.l.map(x, step.l.size()).size() == 90", list(range(90)), True),
        ("[step.l[0], step.l[1]] == [0, 1]", list(range(900)), True),
        ('step.l[0].contains("needle")', ["x" * 1_000_000], False),
        ("step.l[0].contains(step.l[1])", ["x" * 50_000, "xx"], True),
    ],
)
def test_what_people_write_is_answered_all_the_same(source, step, holds):
    assert outcome(source, {"l": step}) is holds


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("step.arguments.id == 1234567890123456789", True),
        ("step.arguments.id == 1234567890123456788", False),
        ("step.arguments.id > 1.5", True),
        ("step.arguments.id in [1, 1234567890123456789]", True),
        ("step.arguments.small / 2.0 == 2.5", True),
        ("step.arguments.larger > 1.0", True),
    ],
)
def test_a_long_id_keeps_all_its_digits(source, holds):
    arguments = {"id": 1234567890123456789, "small": 5, "larger": 2**70}
    check = contract("never", {"condition": cel(source)})
    found = only(check, story(used(0, "a", arguments=arguments)))
    assert (found.reason_code == "broken") is holds


def test_an_expression_that_stops_too_early_is_refused_in_few_words():
    with pytest.raises(BadDefinition) as refused:
        contract("never", {"condition": cel("step.name ==")})
    assert str(refused.value) == (
        "CEL does not understand this expression at character 13: "
        "Syntax error: it ends too early."
    )
