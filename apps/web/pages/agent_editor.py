"""What the pages need on which people write what an agent must hold and decides."""

from __future__ import annotations

import msgspec

from apps.agents.models import Agent, AgentDefinition
from apps.agents.queries import outcome_definition
from apps.engine.agent_contracts import (
    AgentContractSpec,
    BadDefinition,
    CompiledContract,
    Unread,
    stored_contract,
    stored_decision,
)
from apps.engine.extraction import (
    AUTOMATIC,
    AUTOMATIC_ORDER,
    BadDecision,
    DecisionSpec,
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
from apps.web.pages.bodies import as_text

Kinds = list[tuple[str, str, bool]]


class ContractEditor(msgspec.Struct, frozen=True):
    """The form of a contract of an agent; `at` is its place from 1, `None` for a new one.

    `number` is the version that counts while the form is filled in, `unread` what is
    stored there and cannot be read.
    """

    place: Place
    agent: Agent
    form: HeldForm
    kinds: Kinds
    then_kinds: Kinds
    number: int
    at: int | None = None
    preview: ContractPreview | None = None
    unread: Unread | None = None

    @property
    def stored(self) -> str:
        """The text of what is stored and cannot be read."""
        return "" if self.unread is None else as_text(self.unread.stored)


class DecisionEditor(msgspec.Struct, frozen=True):
    """The form of how a decision is found; `agent` is `None` for the whole system."""

    place: Place
    agent: Agent | None
    form: DecisionForm
    kinds: Kinds
    number: int
    order: tuple[str, ...] = AUTOMATIC_ORDER
    preview: DecisionPreview | None = None
    unread: Unread | None = None

    @property
    def stored(self) -> str:
        """The text of what is stored and cannot be read."""
        return "" if self.unread is None else as_text(self.unread.stored)


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
    stored = None if at is None else contract_at(current, at)
    return ContractEditor(
        place=place,
        agent=agent,
        form=form,
        kinds=kinds_of_contract(form.kind),
        then_kinds=kinds_of_then(form.then),
        number=0 if current is None else current.number,
        at=at,
        unread=stored if isinstance(stored, Unread) else None,
    )


def decision_editor(
    place: Place,
    agent: Agent | None,
    form: DecisionForm,
    *,
    number: int,
    stored: DecisionSpec | Unread,
) -> DecisionEditor:
    """The form of how a decision is found, without a preview.

    `stored` is how it is found at present.
    """
    form.mark_errors()
    return DecisionEditor(
        place=place,
        agent=agent,
        form=form,
        kinds=kinds_of_decision(form.kind),
        number=number,
        unread=stored if isinstance(stored, Unread) else None,
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


def decision_in(current: AgentDefinition | None) -> DecisionSpec | Unread:
    """How the decision of an agent is found at present."""
    if current is None:
        return AUTOMATIC
    return stored_decision(current.decision, version=current.number)


def decision_of_whole(project_id: int) -> tuple[DecisionSpec | Unread, int]:
    """How the decision of the whole system is found, and the version that counts."""
    row = outcome_definition(project_id)
    if row is None:
        return AUTOMATIC, 0
    return stored_decision(row.decision, version=row.number), row.number


def contract_at(
    current: AgentDefinition | None, at: int
) -> AgentContractSpec | Unread | None:
    """The contract at a place from 1; `None` where there is none."""
    if current is None or not 1 <= at <= len(current.held):
        return None
    return stored_contract(current.held[at - 1], at=at, version=current.number)
