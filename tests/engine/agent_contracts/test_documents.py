"""Contracts as YAML: the same again after writing, nothing half taken, nothing hostile."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.agent_contracts import (
    AgentContracts,
    BadContractsFile,
    ContractsFile,
    contracts_from_yaml,
    contracts_to_yaml,
    decoded_agent_contract,
    decoded_expectation,
)
from apps.engine.agent_contracts.plain_yaml import BadYaml, read_yaml, write_yaml
from apps.engine.extraction import AUTOMATIC, decoded_decision

EXAMPLE = """
evalsite: 1
agents:
  router:
    decision: {kind: jmespath, expression: route, normalisers: []}
    contracts:
      - name: route is known
        kind: one_of
        subject: decision
        values: [billing, no, 007, 1e5, 2026-01-31, 1.0, true, null]
      - {name: route is known, kind: equality, path: route, expected: billing}
      - name: refunds are looked up first
        kind: temporal
        temporal:
          operator: precedes
          select: {name: refund}
          before: {name: lookup}
  billing: {}
tasks:
  refund *: {expect: share, at_least: 0.8}
  "12": {expect: pass}
"""


def problems(text):
    with pytest.raises(BadContractsFile) as refused:
        contracts_from_yaml(text)
    assert all(one.endswith(".") for one in refused.value.problems)
    return refused.value.problems


def test_a_file_is_read_as_a_person_wrote_it():
    found = contracts_from_yaml(EXAMPLE)
    router = found.agents["router"]
    assert router.decision == decoded_decision(
        {"kind": "jmespath", "expression": "route", "normalisers": []}
    )
    assert len(router.contracts) == 3
    assert router.contracts[0].values == (
        "billing", "no", "007", 1e5, "2026-01-31", 1.0, True, None,
    )  # fmt: skip
    assert found.agents["billing"] == AgentContracts()
    assert found.tasks["12"] == decoded_expectation({"expect": "pass"})


def test_writing_and_reading_gives_the_same_again_and_the_same_text():
    found = contracts_from_yaml(EXAMPLE)
    written = contracts_to_yaml(found)
    assert contracts_from_yaml(written) == found
    assert contracts_to_yaml(contracts_from_yaml(written)) == written
    assert "&" not in written
    for plain in (
        ContractsFile(),
        ContractsFile(agents={"a": AgentContracts(decision=AUTOMATIC)}),
    ):
        assert contracts_from_yaml(contracts_to_yaml(plain)) == plain


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
    | st.sampled_from(["no", "007", "1e5", "~", "null", "=", "<<", "1:30", "0x1f", "+1",
                       ".5", "1_000", "- a", "a: b", "#", "", " ", "2026-01-31", "y"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(json_values)
def test_any_expected_value_comes_back_the_same(value):
    assert repr(read_yaml(write_yaml(value))) == repr(value)
    spec = decoded_agent_contract({"name": "x", "kind": "subset", "expected": value})
    file = ContractsFile(agents={"a": AgentContracts(contracts=(spec,))})
    assert contracts_from_yaml(contracts_to_yaml(file)) == file


def test_each_problem_names_its_agent_contract_and_field():
    found = problems("""
evalsite: 1
agents:
  router:
    decision: {kind: label}
    more: 1
    contracts:
      - {name: good, kind: equality, expected: 1}
      - {name: amount, kind: range}
      - nothing
  sales: [1]
  other: {contracts: {a: 1}}
tasks:
  a: {expect: share, at_least: 2}
  b: pass
""")
    begins = [
        "Agent “router”: “more” is not said of an agent.",
        "Agent “router”, decision, field “labels”: ",
        "Agent “router”, contract 2 (“amount”), field “minimum”: ",
        "Agent “router”, contract 3: ",
        "Agent “sales”: ",
        "Agent “other”: ",
        "Task “a”, field “at_least”: ",
        "Task “b”: ",
    ]
    assert len(found) == len(begins)
    assert all(one.startswith(begin) for one, begin in zip(found, begins, strict=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold"),
        ("[]", "must hold"),
        ("evalsite: 2", "evalsite: 1"),
        ("evalsite: true", "evalsite: 1"),
        ("agents: {}", "evalsite: 1"),
        ("evalsite: 1\nprojects: {}", "“projects” is no part"),
        ("evalsite: 1\nagents: [a]", "“agents” must hold names"),
        ("evalsite: 1\nagents: {1: {}}", "in quotes"),
        ("evalsite: 1\nagents: {'': {}}", "1 to 200 characters"),
        ('evalsite: 1\nagents: {"\\uD800": {}}', "surrogate"),
        ("evalsite: 1\nevalsite: 1", "Line 2, character 1: “evalsite” stands twice."),
        ("evalsite: 1\nagents: {a: {contracts: []}, a: {}}", "“a” stands twice"),
        ("a: &x [1]\nb: *x", "Line 1, character 4: anchors"),
        ("a: *x", "anchors"),
        ("a: !!python/object:os.system x", "tags"),
        ("a: !!set {x}", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("!mine {}", "tags"),
        ("? [a]\n: b", "must be a text"),
        ("? {a: b}\n: b", "must be a text"),
        ("a: [1", "Line 1"),
        ("a: b: c", "Line 1"),
        ("a\tb: {\t", "Line 1"),
        ("--- 1\n--- 2", "another document"),
        ("a: \0", "does not allow"),
        ("a: " + "9" * 5_000, "too many digits"),
        ("[" * 5_000, "nested deeper than 40"),
        ("a: [" + "1," * 60_000 + "]", "more than 20,000 values"),
        ("a: " + "x" * 300_000, "at most 262,144"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_used_says_why(text, said):
    started = time.process_time()
    assert any(said in one for one in problems(text))
    assert time.process_time() - started < 10


def test_a_bomb_of_aliases_is_refused_at_once():
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]" for n in range(1, 30)]
    started = time.process_time()
    assert "anchors" in problems("\n".join(lines))[0]
    assert time.process_time() - started < 1


def test_too_many_agents_contracts_and_tasks_are_refused():
    agents = "\n".join(f"  a{n}: {{}}" for n in range(501))
    assert "at most 500" in problems(f"evalsite: 1\nagents:\n{agents}")[0]
    one = "{name: x, kind: equality, expected: 1}"
    many = ", ".join([one] * 201)
    text = f"evalsite: 1\nagents: {{a: {{contracts: [{many}]}}}}"
    assert "at most 200 contracts" in problems(text)[0]


def test_a_merge_key_is_a_plain_name():
    assert read_yaml("{<<: {a: 1}, b: 2}") == {"<<": {"a": 1}, "b": 2}


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("[]{}:,-&*!|>'\"%@` \n\tab01?#~<", max_size=60))
def test_no_text_raises_anything_but_a_refusal(text):
    with suppress(BadYaml):
        read_yaml(text)
    with pytest.raises(BadContractsFile):
        contracts_from_yaml(text)
