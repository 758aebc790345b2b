"""Contracts of agents: what an agent must hold for an input, and what the outcome must be.

A contract says that recorded behaviour is, or is not, what somebody asked for. It does
not say that what was asked for is right.
"""

from apps.engine.agent_contracts.answers import (
    AgentJudgement,
    ContractAnswer,
    ContractState,
    Counts,
    JudgedContract,
    counted,
)
from apps.engine.agent_contracts.decoding import (
    MOST_CONTRACTS,
    decoded_agent_contract,
)
from apps.engine.agent_contracts.documents import (
    AgentContracts,
    BadContractsFile,
    ContractsFile,
    StoredAgent,
    StoredDefinitions,
    contracts_from_yaml,
    contracts_to_yaml,
)
from apps.engine.agent_contracts.judging import (
    CompiledContract,
    UnreadContract,
    compiled,
    judge,
    judged_alone,
)
from apps.engine.agent_contracts.outcomes import (
    Expect,
    OutcomeExpectation,
    OutcomeVerdict,
    TraceColour,
    decoded_expectation,
    expectation_for,
    expectation_sentence,
    outcome_verdict,
)
from apps.engine.agent_contracts.seen import Seen
from apps.engine.agent_contracts.spec import (
    AgentContractSpec,
    Kind,
    Language,
    Rule,
    Subject,
    When,
    canonical,
)
from apps.engine.agent_contracts.stored import (
    listed,
    named,
    stored_contract,
    stored_contracts,
    stored_decision,
    stored_expectations,
    task_of,
    unread_in,
)
from apps.engine.agent_contracts.unread import Unread
from apps.engine.agent_contracts.wording import plain_sentence
from apps.engine.contracts.spec import BadDefinition, hash_of_spec

__all__ = [
    "MOST_CONTRACTS",
    "AgentContractSpec",
    "AgentContracts",
    "AgentJudgement",
    "BadContractsFile",
    "BadDefinition",
    "CompiledContract",
    "ContractAnswer",
    "ContractState",
    "ContractsFile",
    "Counts",
    "Expect",
    "JudgedContract",
    "Kind",
    "Language",
    "OutcomeExpectation",
    "OutcomeVerdict",
    "Rule",
    "Seen",
    "StoredAgent",
    "StoredDefinitions",
    "Subject",
    "TraceColour",
    "Unread",
    "UnreadContract",
    "When",
    "canonical",
    "compiled",
    "contracts_from_yaml",
    "contracts_to_yaml",
    "counted",
    "decoded_agent_contract",
    "decoded_expectation",
    "expectation_for",
    "expectation_sentence",
    "hash_of_spec",
    "judge",
    "judged_alone",
    "listed",
    "named",
    "outcome_verdict",
    "plain_sentence",
    "stored_contract",
    "stored_contracts",
    "stored_decision",
    "stored_expectations",
    "task_of",
    "unread_in",
]
