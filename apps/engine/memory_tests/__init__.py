"""Memory tests: a fact is planted, buried under other turns, and asked for.

A test is planned once, driven over any conversation, judged by the rules for planted
facts, and shown as recall by depth. What is not shown is that an agent would know
another fact, or that it would be asked for in these words.
"""

from apps.engine.memory_tests.burial import (
    Burial,
    Curve,
    DepthPoint,
    Middle,
    Standing,
    burial_from,
    burial_of,
    needed_for,
)
from apps.engine.memory_tests.chat import ChatConversation
from apps.engine.memory_tests.conversation import (
    Conversation,
    Heard,
    NotOffered,
    Said,
    Summarises,
    TrialRecord,
    TurnFailed,
    run_memory_test,
    run_trial,
)
from apps.engine.memory_tests.decoding import decoded_memory_test
from apps.engine.memory_tests.filler import LANGUAGES
from apps.engine.memory_tests.heard_trace import SUMMARY_ROLE, events_of, ran_of
from apps.engine.memory_tests.judging import Recollection
from apps.engine.memory_tests.lost import Lost, Of, Seen
from apps.engine.memory_tests.plan import (
    Act,
    ActKind,
    Plan,
    PlannedTrial,
    PlannedTurn,
    TurnKind,
    acts_of,
    planned,
    planned_trial,
)
from apps.engine.memory_tests.probes import Probed, is_untried, probed_in
from apps.engine.memory_tests.sentences import PLACE_WORDS, rule_of, sentences_of
from apps.engine.memory_tests.spec import (
    Decoy,
    Fact,
    Filler,
    Length,
    MemoryTest,
    Mode,
    encoded_memory_test,
)
from apps.engine.memory_tests.trend import Trend, falling_trend

__all__ = [
    "LANGUAGES",
    "PLACE_WORDS",
    "SUMMARY_ROLE",
    "Act",
    "ActKind",
    "Burial",
    "ChatConversation",
    "Conversation",
    "Curve",
    "Decoy",
    "DepthPoint",
    "Fact",
    "Filler",
    "Heard",
    "Length",
    "Lost",
    "MemoryTest",
    "Middle",
    "Mode",
    "NotOffered",
    "Of",
    "Plan",
    "PlannedTrial",
    "PlannedTurn",
    "Probed",
    "Recollection",
    "Said",
    "Seen",
    "Standing",
    "Summarises",
    "Trend",
    "TrialRecord",
    "TurnFailed",
    "TurnKind",
    "acts_of",
    "burial_from",
    "burial_of",
    "decoded_memory_test",
    "encoded_memory_test",
    "events_of",
    "falling_trend",
    "is_untried",
    "needed_for",
    "planned",
    "planned_trial",
    "probed_in",
    "ran_of",
    "rule_of",
    "run_memory_test",
    "run_trial",
    "sentences_of",
]
