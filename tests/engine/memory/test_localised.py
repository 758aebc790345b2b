"""Each layer of a memory fails once, in a trace in which the layers around it hold."""

from __future__ import annotations

import pytest

from apps.engine.memory import LayerNames, Place, State, recall_of
from apps.engine.trace import StepKind
from tests.engine.memory.conversations import NOISE, PROBE, TOLD, Talk, fact

NO = "I do not know."
HISTORY = [{"role": "user", "content": TOLD}, {"role": "user", "content": PROBE}]
SHORT = [
    {"role": "system", "content": NOISE},
    {"role": "user", "content": PROBE},
]


def where(talk, **fields):
    found = recall_of(talk.trace(), fact(**fields))
    assert found.state in {State.LOST, State.CONTRADICTED}
    return found.place, found.place_steps, found.agent


def told(*agents):
    return Talk(*agents).user(TOLD, by=0 if agents else None)


def test_an_answer_that_ignores_its_input():
    talk = told("desk").says("Noted.", by=0).user(PROBE, by=0)
    talk.says(NO, sent=HISTORY, by=0)
    assert where(talk) == (Place.IGNORED, (3,), "desk")


def test_a_denied_value_in_the_input_is_not_the_fact():
    sent = [{"role": "user", "content": f"The number is not 84920. {PROBE}"}]
    talk = told().says("Noted.").user(PROBE).says(NO, sent=sent)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_a_summariser_that_drops_it():
    talk = told("desk", "summariser").says("Noted.", by=0)
    talk.says("The user gave a number.", sent=TOLD, by=1)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.DROPPED_BY_SUMMARISER, (2,), "summariser")


def test_a_summariser_that_keeps_it_is_not_blamed():
    talk = told("desk", "summariser").says("Noted.", by=0)
    talk.says("The number is 84920.", sent=TOLD, by=1)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.NOT_RETRIEVED, (2, 4), "desk")


def test_a_summary_step_that_is_no_agent():
    talk = told().says("Noted.")
    talk.step(StepKind.OTHER, "ConversationSummary", TOLD, "A number was given.")
    talk.user(PROBE).says(NO)
    assert where(talk) == (Place.DROPPED_BY_SUMMARISER, (2,), "")


def test_a_compaction_that_is_recorded_with_its_summary_only():
    talk = told("desk").says("Noted.", sent=[{"role": "user", "content": TOLD}], by=0)
    talk.step(StepKind.MEMORY, "context condensed", None, {"summary": NOISE}, by=0)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.DROPPED_BY_SUMMARISER, (2,), "desk")


def test_a_value_that_was_gone_before_the_summary_is_not_the_summarisers():
    talk = told("desk", "summariser").says("Noted.", by=0)
    talk.says("Nothing.", sent=NOISE, by=1)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_two_memory_states_of_which_the_second_lacks_it():
    talk = told().step(StepKind.MEMORY, "state", None, {"number": "84920"})
    talk.says("Noted.").user("And the weather?").says("Fine.")
    talk.step(StepKind.MEMORY, "state", None, {"weather": "fine"})
    talk.user(PROBE).says(NO, sent=SHORT)
    assert where(talk) == (Place.DROPPED_BY_SUMMARISER, (1, 5), "")


def test_a_state_that_holds_it_again_is_what_counts():
    talk = told()
    for kept in ({"number": "84920"}, {"weather": "fine"}, {"number": "84920"}):
        talk.step(StepKind.MEMORY, "state", None, kept)
    talk.user(PROBE).says(NO, sent=SHORT)
    assert where(talk)[:2] == (Place.NOT_RETRIEVED, (3, 5))


def test_a_memory_that_was_given_it_and_never_stored_it():
    talk = told("desk").says("I save that.", by=0)
    talk.uses("save_memory", "ok", by=0, text="The user likes tea.")
    talk.user(PROBE, by=0).says(NO, by=0)
    assert where(talk) == (Place.NEVER_STORED, (2,), "desk")


def test_a_memory_step_with_the_fact_in_its_input_only():
    talk = told().step(StepKind.MEMORY, "state", TOLD, {"likes": "tea"})
    talk.user(PROBE).says(NO, sent=SHORT)
    assert where(talk) == (Place.NEVER_STORED, (1,), "")


def test_several_writes_are_all_shown():
    talk = told("desk")
    for text in ("tea", "coffee"):
        talk.uses("remember", "ok", by=0, text=text)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.NEVER_STORED, (1, 2), "desk")


def test_a_write_by_an_agent_that_was_not_told_is_not_blamed():
    talk = told("desk", "keeper").says("Noted.", by=0)
    talk.uses("save_memory", "ok", by=1, text="The user likes tea.")
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_a_write_asked_for_by_a_model_that_was_told():
    talk = told("desk", "keeper")
    talk.says("", sent=TOLD, by=1)
    talk.uses("save_memory", "ok", by=1, asked_by=1, text="The user likes tea.")
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.NEVER_STORED, (2,), "keeper")


def test_a_later_write_takes_nothing_away():
    talk = told("desk").uses("save_memory", "ok", by=0, text="84920")
    talk.uses("save_memory", "ok", by=0, text="tea")
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[:2] == (Place.NOT_RETRIEVED, (1, 4))


def test_a_memory_that_was_erased_settles_nothing():
    talk = told("desk").uses("save_memory", "ok", by=0, text="84920")
    talk.uses("clear_memory", "ok", by=0)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_what_is_stored_after_an_erasure_does_not_say_that_it_never_was():
    talk = told("desk").uses("save_memory", "ok", by=0, text="84920")
    talk.uses("clear_memory", "ok", by=0)
    talk.uses("save_memory", "ok", by=0, text="tea")
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_a_memory_agent_that_says_it_saved_is_not_blamed_for_its_words():
    talk = told("desk", "memory").says("Saved.", sent=TOLD, by=1)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_a_memory_agent_that_was_given_it_and_does_not_find_it():
    talk = told("desk", "memory").says("Noted.", by=0).user(PROBE, by=0)
    talk.says("Nothing is known.", sent=HISTORY, by=1).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.IGNORED, (3, 4), "memory")


def test_a_memory_agent_that_does_not_look_it_up():
    talk = told("desk", "memory").uses("save_memory", "ok", by=0, text="84920")
    talk.user(PROBE, by=0).says("Nothing is known.", sent=PROBE, by=1)
    talk.says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.NOT_RETRIEVED, (1, 3, 4), "memory")


def test_a_look_up_that_does_not_find_it():
    talk = told("desk", "memory").uses("save_memory", "ok", by=1, text="84920")
    talk.says("Noted.", by=0).user(PROBE, by=0)
    talk.uses("search_memory", [{"text": "likes tea"}], by=1, query="number")
    talk.says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.NOT_RETRIEVED, (1, 4, 5), "memory")


def test_a_look_up_that_fails_is_named_though_the_input_is_not_recorded():
    talk = told("desk", "memory").uses("save_memory", "ok", by=1, text="84920")
    talk.says("Noted.", by=0).user(PROBE, by=0)
    talk.step(StepKind.RETRIEVAL, "notes", "number", ["likes tea"], by=1)
    talk.says(NO, by=0)
    assert where(talk) == (Place.NOT_RETRIEVED, (1, 4), "memory")
    assert "not recorded whole" in recall_of(talk.trace(), fact()).why


def test_a_look_up_that_finds_it_while_no_input_is_recorded_cannot_be_told():
    talk = told("desk").uses("save_memory", "ok", by=0, text="84920")
    talk.user(PROBE, by=0).uses("search_memory", "84920", by=0, query="number")
    talk.says(NO, by=0)
    assert where(talk)[0] is Place.CANNOT_TELL


def test_a_retrieval_before_the_model_call_of_a_turn_known_by_its_input():
    talk = Talk("desk").says("Noted.", sent=[{"role": "user", "content": TOLD}], by=0)
    talk.uses("save_memory", "ok", by=0, text="84920")
    talk.step(StepKind.RETRIEVAL, "notes", PROBE, ["likes tea"], by=0)
    talk.says(NO, sent=[{"role": "user", "content": PROBE}], by=0)
    assert where(talk) == (Place.NOT_RETRIEVED, (1, 2, 3), "desk")


def test_an_agent_that_knew_and_did_not_hand_it_on():
    talk = told("reader", "writer").says("Noted.", by=0).user(PROBE, by=0)
    talk.says("The user asks for a number.", sent=HISTORY, by=0)
    talk.says(NO, sent=SHORT, by=1)
    assert where(talk) == (Place.IGNORED, (3, 4), "reader")


def test_nothing_recorded_in_between_cannot_be_told():
    talk = told("desk").says("Noted.", by=0).user(PROBE, by=0).says(NO, by=0)
    assert where(talk) == (Place.CANNOT_TELL, (3,), "desk")


def test_a_cut_context_without_a_memory_shows_where_it_stood_last():
    talk = told("desk").says("Noted.", sent=[{"role": "user", "content": TOLD}], by=0)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.CANNOT_TELL, (1, 3), "desk")
    assert "step 2 was the last one" in recall_of(talk.trace(), fact()).why


@pytest.mark.parametrize("sent", ["[redacted: phone] and so on", "", [], {}])
def test_a_redacted_or_empty_input_is_not_recorded(sent):
    talk = told("desk").says("Noted.", by=0).user(PROBE, by=0)
    talk.says(NO, sent=sent, by=0)
    assert "not recorded whole" in recall_of(talk.trace(), fact()).why


def test_an_input_beside_a_conversation_that_the_provider_keeps_is_a_part():
    talk = told("desk").uses("save_memory", "ok", by=0, text="84920")
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0, conversation="c1")
    assert where(talk)[0] is Place.CANNOT_TELL


def test_names_of_layers_are_parameters():
    talk = told("desk", "archivist").says("Noted.", by=0)
    talk.says("Nothing of note.", sent=TOLD, by=1)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    trace = talk.trace()
    assert recall_of(trace, fact()).place is Place.CANNOT_TELL
    named = recall_of(trace, fact(), LayerNames(summary="archiv*"))
    assert (named.place, named.agent) == (Place.DROPPED_BY_SUMMARISER, "archivist")


def test_a_tool_that_summarises_and_one_that_fetches_a_summary_differ():
    talk = told("desk").says("Noted.", by=0)
    talk.uses("summarize_conversation", NOISE, by=0, text=TOLD)
    talk.uses("get_summary", NOISE, by=0, of=TOLD)
    talk.user(PROBE, by=0).says(NO, sent=SHORT, by=0)
    assert where(talk) == (Place.DROPPED_BY_SUMMARISER, (2,), "desk")
