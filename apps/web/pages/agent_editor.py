"""What the pages need on which people write what an agent must hold and decides."""

from __future__ import annotations

import msgspec

from apps.agents.models import Agent, AgentDefinition
from apps.agents.queries import outcome_definition
from apps.engine.agent_contracts import (
    AgentContractSpec,
    BadDefinition,
    CompiledContract,
    decoded_agent_contract,
)
from apps.engine.extraction import (
    AUTOMATIC,
    AUTOMATIC_ORDER,
    BadDecision,
    DecisionSpec,
    decoded_decision,
)
from apps.web.access import Place
from apps.web.agent_decision_forms import DecisionForm, kinds_of_decision
from apps.web.agent_forms import (
    HeldForm,
    kinds_of_contract,
    kinds_of_then,
)
from apps.web.pages.agent_trying import (
    ContractPreview,
    DecisionPreview,
    contract_preview,
    decision_preview,
    recent_runs,
)

Kinds = list[tuple[str, str, bool]]


class ContractEditor(msgspec.Struct, frozen=True):
    """The form of a contract of an agent; `at` is its place from 1, `None` for a new one.

    `number` is the version that counts while the form is filled in.
    """

    place: Place
    agent: Agent
    form: HeldForm
    kinds: Kinds
    then_kinds: Kinds
    number: int
    at: int | None = None
    preview: ContractPreview | None = None


class DecisionEditor(msgspec.Struct, frozen=True):
    """The form of how a decision is found; `agent` is `None` for the whole system."""

    place: Place
    agent: Agent | None
    form: DecisionForm
    kinds: Kinds
    number: int
    order: tuple[str, ...] = AUTOMATIC_ORDER
    preview: DecisionPreview | None = None


def contract_editor(
    place: Place,
    agent: Agent,
    form: HeldForm,
    *,
    current: AgentDefinition | None,
    at: int | None = None,
) -> ContractEditor:
    """The form of a contract, without a preview."""
    form.mark_errors()
    return ContractEditor(
        place=place,
        agent=agent,
        form=form,
        kinds=kinds_of_contract(form.kind),
        then_kinds=kinds_of_then(form.then),
        number=0 if current is None else current.number,
        at=at,
    )


def decision_editor(
    place: Place, agent: Agent | None, form: DecisionForm, *, number: int
) -> DecisionEditor:
    """The form of how a decision is found, without a preview."""
    form.mark_errors()
    return DecisionEditor(
        place=place,
        agent=agent,
        form=form,
        kinds=kinds_of_decision(form.kind),
        number=number,
    )


def wanted_contract(form: HeldForm) -> AgentContractSpec | None:
    """The contract that was sent; `None`, with errors in the form, where it is none."""
    if not form.is_valid():
        return None
    try:
        return form.wanted()
    except BadDefinition as error:
        form.put_error(error)
        return None


def wanted_decision(form: DecisionForm) -> DecisionSpec | None:
    """The definition that was sent; `None`, with errors in the form, where it is none."""
    if not form.is_valid():
        return None
    try:
        return form.wanted()
    except BadDecision as error:
        form.put_error(error)
        return None


def tried_contract(
    place: Place, agent: Agent, form: HeldForm, current: AgentDefinition | None
) -> ContractPreview:
    """What the contract of a form says of recent invocations, or what is wrong with it."""
    spec = wanted_contract(form)
    if spec is None:
        return ContractPreview(errors=form.wrong())
    recent = recent_runs(place.project.pk, agent)
    return contract_preview(recent, CompiledContract(spec), decision_in(current))


def tried_decision(
    place: Place, agent: Agent | None, form: DecisionForm
) -> DecisionPreview:
    """What a form finds as the decision in recent runs, or what is wrong with it."""
    spec = wanted_decision(form)
    if spec is None:
        return DecisionPreview(errors=form.wrong())
    return decision_preview(recent_runs(place.project.pk, agent), spec)


def decision_in(current: AgentDefinition | None) -> DecisionSpec:
    """How the decision of an agent is found at present."""
    if current is None or current.decision is None:
        return AUTOMATIC
    return decoded_decision(current.decision)


def decision_of_whole(project_id: int) -> tuple[DecisionSpec, int]:
    """How the decision of the whole system is found, and the version that counts."""
    row = outcome_definition(project_id)
    if row is None:
        return AUTOMATIC, 0
    spec = AUTOMATIC if row.decision is None else decoded_decision(row.decision)
    return spec, row.number


def contract_at(current: AgentDefinition | None, at: int) -> AgentContractSpec | None:
    """The contract at a place from 1; `None` where there is none that can be read."""
    stored = [] if current is None else current.contracts
    if not 1 <= at <= len(stored):
        return None
    return decoded_agent_contract(stored[at - 1])
