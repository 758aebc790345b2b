"""Agents with a planted failure: the report names the layer that was told to fail."""

from __future__ import annotations

import msgspec
import pytest

from apps.engine.memory import Place
from apps.engine.memory_tests import (
    ChatConversation,
    NotOffered,
    Recollection,
    Said,
    TrialRecord,
    burial_of,
    events_of,
    planned,
    probed_in,
    ran_of,
    run_memory_test,
    run_trial,
    sentences_of,
)
from apps.engine.replay.run import (
    Ending,
    ErrorKind,
    Message,
    ModelCalled,
    Proof,
    RunError,
    StateSeen,
)
from tests.engine.memory_tests.agents import (
    COLOUR,
    LOCKER,
    NUMBER,
    PROBE,
    Agent,
    Breaking,
    a_test,
    as_json,
    at_a_probe,
    chat,
    last,
)

TEST = a_test(depths=[0, 3, 8], repeats=2)
SUMMED = a_test(depths=[0, 3, 8], repeats=2, mode="summarised", summary_every=4)


def has_no_digit(text):
    return not any(char.isdigit() for char in text)


class KeepsLate(Agent):
    """Writes what it was told into its store one turn later."""

    late = ""

    def turn(self, text):
        said = super().turn(text)
        self.log, self.late = [*self.log[:-1], self.late], text
        return said


AGENTS = {
    "a window of the log": (
        TEST, Agent(TEST, hands=last(4)), [8], Place.NOT_RETRIEVED,
    ),
    "a state that is cut": (
        TEST, Agent(TEST, shortens=last(4)), [8], Place.DROPPED_BY_SUMMARISER,
    ),
    "a summary without numbers": (
        SUMMED, chat(SUMMED, summary=has_no_digit), [3, 8],
        Place.DROPPED_BY_SUMMARISER,
    ),
    "a summary without numbers, the last messages kept": (
        SUMMED, chat(SUMMED, summary=has_no_digit, keep=8), [8],
        Place.DROPPED_BY_SUMMARISER,
    ),
    "a store that never saves": (
        TEST, Agent(TEST, keeps=has_no_digit), [0, 3, 8], Place.NEVER_STORED,
    ),
    "a store without an input that is known": (
        TEST, Agent(TEST, keeps=has_no_digit, shows="state"), [0, 3, 8],
        Place.NEVER_STORED,
    ),
    "a retrieval that misses": (
        TEST, Agent(TEST, hands=lambda log: [t for t in log if has_no_digit(t)]),
        [0, 3, 8], Place.NOT_RETRIEVED,
    ),
    "a model that ignores what it is given": (
        TEST, Agent(TEST, says=at_a_probe(TEST, "No idea.")), [0, 3, 8], Place.IGNORED,
    ),
    "a store that nobody may look into": (
        TEST, Agent(TEST, hands=last(4), shows=""), [8], Place.CANNOT_TELL,
    ),
    "an input that nobody may look into": (
        TEST, Agent(TEST, hands=last(4), shows="state"), [8], Place.CANNOT_TELL,
    ),
    "an input that shows what is missing": (
        TEST, Agent(TEST, hands=last(4), shows="handed"), [8], Place.CANNOT_TELL,
    ),
    "a store that saves late and is not read": (
        TEST, KeepsLate(TEST, hands=lambda log: []), [3, 8], Place.NOT_RETRIEVED,
    ),
}  # fmt: skip


def burial_by(test, conversation):
    return burial_of(test, run_memory_test(planned(test), conversation))


@pytest.mark.parametrize("name", AGENTS)
def test_the_layer_that_was_told_to_fail_is_named_at_each_depth(name):
    test, agent, depths, place = AGENTS[name]
    burial = burial_by(test, agent)
    for point in burial.whole.points:
        if point.depth in depths:
            assert point.counts["lost"] == point.trials == 2
            assert point.places == {place.value: 2}
        elif name != "a store that saves late and is not read":
            assert (point.recalled, point.places) == (2, {})
    assert all(one.why.endswith(".") for one in burial.probed if one.place)


@pytest.mark.parametrize(
    ("answer", "recollection", "place"),
    [
        ("It is X9-4418.", "contradicted", Place.IGNORED),
        ("X9-4417 or X9-4418.", "ambiguous", None),
        ("", "failed", None),
    ],
)
def test_a_decoy_contradicts_several_candidates_are_ambiguous_silence_fails(
    answer, recollection, place
):
    burial = burial_by(TEST, Agent(TEST, says=at_a_probe(TEST, answer)))
    assert {one.recollection.value for one in burial.probed} == {recollection}
    assert {one.place for one in burial.probed} == {place}
    assert [(one.recalled, one.trials) for one in burial.whole.points] == [(0, 2)] * 3


def test_evidence_says_what_was_seen_after_which_turn():
    test, agent, _, _ = AGENTS["a summary without numbers"]
    trial = planned(test).trials[-1]
    [probed] = probed_in(test, run_trial(trial, agent))
    seen = [(one.what.value, one.turn, one.names) for one in probed.seen]
    assert seen[:4] == [
        ("state", 0, True),
        ("state", 3, True),
        ("summary", 3, False),
        ("state", 3, False),
    ]
    assert seen[-1] == ("handed", 9, False)
    assert probed.why.startswith("The state after turn 4 names it, the summary after")
    assert (probed.summaries_between, probed.held) == (2, False)


def test_several_facts_are_counted_each_and_together_by_trial():
    test = a_test(LOCKER, COLOUR, NUMBER, depths=[2, 6], repeats=3)
    burial = burial_by(test, Agent(test, keeps=lambda text: "84920" not in text))
    assert [(one.recalled, one.trials) for one in burial.whole.points] == [(0, 3)] * 2
    by_fact = {c.name: [p.recalled for p in c.points] for c in burial.facts}
    assert by_fact == {"locker": [3, 3], "colour": [3, 3], "order": [0, 0]}
    assert [c.name for c in burial.positions] == [
        "told first",
        "told 2nd of 3",
        "told last",
    ]
    assert [[p.recalled for p in c.points] for c in burial.positions] == [[2, 2]] * 3
    said = " ".join(sentences_of(burial))
    assert "By fact: locker 6 of 6, colour 6 of 6, order 0 of 6." in said
    assert "6 facts were lost or contradicted: 6 never stored." in said


def test_an_agent_that_names_the_fact_again_in_between_is_counted():
    def echoes(asked, answer):
        return answer if "bicycle" in asked else "As you said, X9-4417."

    burial = burial_by(TEST, Agent(TEST, hands=last(1), says=echoes))
    assert burial.renamed == 4
    between = {one.depth: one.named_between for one in burial.probed}
    assert between == {0: 0, 3: 2, 8: 7}  # one turn of each tells the decoy
    assert "In 4 trials the agent itself named" in sentences_of(burial)[-2]


FILLER = next(
    t.text for t in planned(TEST).trials[-1].turns if t.kind.value == "filler"
)


@pytest.mark.parametrize(
    ("at", "failed", "sentence"),
    [
        (PROBE, 6, "The turn that asks failed: It broke at Which"),
        ("restart", 6, "The trial broke off before it was asked for: It broke at rest"),
        (FILLER, None, "The trial broke off before it was asked for: It broke at"),
        ("state", 0, ""),
    ],
)
def test_what_failed_is_in_the_denominator(at, failed, sentence):
    burial = burial_by(TEST, Breaking(TEST, at, ErrorKind.TIMED_OUT))
    broken = [o for o in burial.probed if o.recollection is Recollection.FAILED]
    assert failed is None or len(broken) == failed
    assert all(one.sentence.startswith(sentence) for one in broken)
    assert bool(broken) == bool(sentence)
    assert sum(point.trials for point in burial.whole.points) == 6
    assert sum(point.recalled for point in burial.whole.points) == 6 - len(broken)


def test_what_somebody_cancelled_counts_nowhere_and_is_said():
    burial = burial_by(TEST, Breaking(TEST, PROBE, ErrorKind.CANCELLED))
    assert (burial.untried, burial.probed) == (6, ())
    assert [point.standing.value for point in burial.whole.points] == ["not_tested"] * 3
    assert sentences_of(burial) == (
        "Not tested: no trial was run.",
        "6 trials were cancelled or stopped for the cost, and count nowhere.",
    )


def test_a_target_without_summaries_is_refused_and_not_failed():
    with pytest.raises(NotOffered, match="cannot be asked for one"):
        run_trial(planned(SUMMED).trials[-1], Agent(SUMMED))


class TestAChat:
    """The adapter for what remembers nothing."""

    def test_a_function_that_changes_what_it_is_sent_changes_nothing(self):
        sent = []

        def answer(messages):
            sent.append(as_json(messages))
            messages.clear()
            return {"content": "Fine."}

        talk = ChatConversation(answer, opening=[{"role": "system", "content": "Hi"}])
        talk.turn("One.")
        said = talk.turn("Two.")
        assert [m["content"] for m in sent[-1]] == ["Hi", "One.", "Fine.", "Two."]
        assert said.handed == sent[-1]
        talk.restart()
        assert talk.state() == {"summary": "", "messages": []}

    def test_it_goes_on_from_the_summary_and_the_messages_kept(self):
        talk = chat(SUMMED, summary=has_no_digit, keep=2)
        for text in ("Hello.", "My code is X9-4417.", "Good."):
            talk.turn(text)
        assert "X9" not in talk.summarise().answer
        said = talk.turn("And?")
        assert [m["role"] for m in said.handed] == [
            "system",
            "user",
            "assistant",
            "user",
        ]
        assert said.handed[0]["content"].startswith("Summary of the conversation")

    def test_requests_of_a_driver_are_what_the_model_was_given(self):
        event = ModelCalled(request={"messages": ["cut"]}, response={})
        talk = ChatConversation(lambda messages: Said(answer="No.", events=(event,)))
        assert talk.turn("One.").handed is None
        test = a_test(depths=[1], repeats=1)
        [record] = run_memory_test(planned(test), talk)
        [probed] = probed_in(test, record)
        assert probed.place is Place.NOT_RETRIEVED


def test_a_record_survives_json_and_becomes_the_events_of_a_run():
    agent = chat(SUMMED, summary=has_no_digit)
    record = run_trial(planned(SUMMED).trials[-1], agent)
    again = msgspec.convert(as_json(record), TrialRecord)
    assert probed_in(SUMMED, again) == probed_in(SUMMED, record)
    events = events_of(again)
    roles = [event.role for event in events if isinstance(event, Message)]
    assert roles.count("user") == roles.count("assistant") == 10
    assert roles.count("summary") == 2
    states = [event.turn for event in events if isinstance(event, StateSeen)]
    assert states == [0, 3, 3, 7, 7, 8]
    ran = ran_of(again, Proof(level="none"))
    assert (ran.ending, ran.output) == (Ending.FINISHED, "I do not know that.")
    broken = run_trial(
        planned(TEST).trials[-1], Breaking(TEST, PROBE, ErrorKind.TIMED_OUT)
    )
    assert [e.role for e in events_of(broken) if isinstance(e, Message)][-1] == "user"
    ran = ran_of(broken, Proof(level="none"))
    assert (ran.ending, ran.output, ran.error.kind) == (
        Ending.TIMED_OUT,
        None,
        ErrorKind.TIMED_OUT,
    )


def test_an_answer_that_a_model_call_says_is_not_said_twice():
    def answer(messages):
        event = ModelCalled(request=messages, output="Gladly.")
        is_same = messages[-1]["content"] != PROBE
        return Said(answer="Gladly." if is_same else "No.", events=(event,))

    record = run_trial(planned(TEST).trials[-1], ChatConversation(answer))
    events = events_of(record)
    assert sum(isinstance(event, ModelCalled) for event in events) == 10
    said = [e for e in events if isinstance(e, Message) and e.role == "assistant"]
    assert [event.content for event in said] == ["No."]


def test_a_trial_that_broke_off_has_no_output_though_it_had_answers():
    record = run_trial(planned(TEST).trials[-1], Agent(TEST))
    *whole, asked = record.heard
    error = RunError(kind=ErrorKind.CRASHED, sentence="It crashed.")
    cut = msgspec.structs.replace(asked, value="half an ans", error=error)
    ran = ran_of(TrialRecord(trial=record.trial, heard=(*whole, cut)), Proof(level=""))
    assert (ran.ending, ran.output, ran.error) == (Ending.FAILED, None, error)
