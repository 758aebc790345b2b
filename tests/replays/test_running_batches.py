"""Batches as workers run them: recorded, scored, counted, each run once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from apps.engine.replay.run import Limits, TargetKind
from apps.pipeline.experiments import return_signals
from apps.pipeline.replay_stubs import (
    NoSuchStubs,
    answer_stub_call,
    offered_tools,
    seen_calls,
)
from apps.replays.allowed import allowed_here
from apps.replays.models import Batch, Group, Run
from apps.replays.planning import NewBatch, Plan, start_batch
from apps.replays.running import claim_run
from apps.replays.sealing import set_secret
from apps.replays.stopping import stop_batch
from apps.replays.stub_calls import open_stubs
from apps.replays.targets import NewTarget, add_target, current_version
from apps.replays.transitions import BatchState
from apps.review.models import HistoryEntry, Signal
from apps.scoring.models import Conduct
from apps.traces.contents import stored_contents
from apps.traces.models import Task, Trace, Upload
from apps.verdicts.models import ProjectVerdict
from tests.factories import NOW, decay_trace, upload_traces
from tests.isolation.sandbox.runs import PLANTED
from tests.model_server import call, model_server
from tests.replays.alone import (
    KEY,
    PRICE,
    assert_whole,
    batch_at,
    case_with_tool,
    drive,
    finished,
    states,
    target_at,
    work,
)
from tests.replays.rows import make_case, make_target
from tests.scored import scored


@pytest.fixture(autouse=True)
def agent(agent_alone):
    return agent_alone


@pytest.fixture
def project(agent):
    return agent.project


def texts_of(batch: Batch) -> str:
    traces = Trace.everything.filter(upload=batch.upload_id)
    return "".join(repr(one) for one in stored_contents(list(traces)))


class TestRecordings:
    def test_a_batch_is_run_recorded_scored_and_counts_in_the_verdict(
        self, agent, project, settings, owner
    ):
        answers = [call("lookup", number=7), f"It is open. {KEY}"]
        with model_server("scripted", answers=answers) as server:
            target = target_at(agent, server, settings)
            set_secret(target=target, text=KEY, user_id=owner.pk, now=NOW)
            batch = batch_at(target, cases=[case_with_tool(agent)], price=PRICE)
            ProjectVerdict.objects.create(project=project, settled_as="before")
            work()
            stats = server.stats
        assert_whole(batch)
        assert (batch.state, states(batch)) == ("done", {"finished": 3})
        assert batch.spent_calls == stats.calls == 6
        assert {one["Authorization"] for one in stats.headers} == {f"Bearer {KEY}"}
        runs = Run.objects.filter(batch=batch)
        tokens = sum(run.input_tokens + run.output_tokens for run in runs)
        assert batch.spent_tokens == tokens > 0
        assert batch.spent_money == sum(run.money for run in runs) == tokens
        assert batch.is_money_known
        task = Task.everything.get(group__batch=batch)
        assert task.is_replay
        assert not Task.objects.exists()
        trials = Trace.everything.filter(task=task).values_list("trial", flat=True)
        assert sorted(trials) == [1, 2, 3]
        assert Group.objects.get(batch=batch).is_newest
        assert ProjectVerdict.objects.get().settled_as == ""
        proof = runs[0].proof
        assert (proof["real_calls"], proof["stubbed_calls"]) == (0, 1)
        assert KEY not in texts_of(batch)
        assert KEY not in repr(list(runs.values()))
        scored(project)
        assert Conduct.objects.filter(trace__is_replay=True).count() == 3
        assert not Upload.objects.exists()

    def test_what_a_project_does_not_keep_is_not_in_a_recording(
        self, agent, project, settings
    ):
        type(project).objects.update(structure_only=True)
        with model_server(answer="The password is hunter2.") as server:
            batch = batch_at(target_at(agent, server, settings), runs=1)
            work()
        assert_whole(batch)
        assert "hunter2" not in texts_of(batch)
        assert Trace.everything.get().model_call_count == 1

    def test_the_newest_whole_group_of_a_case_counts(self, agent, monkeypatch):
        drive(monkeypatch, lambda order, equipment: finished())
        target, cases = make_target(agent), [make_case(agent)]
        older, newer = (batch_at(target, runs=1, cases=cases) for _ in range(2))
        Run.objects.filter(batch=older).update(not_before=Now() + timedelta(hours=1))
        work()
        assert Group.objects.get(batch=newer).is_newest
        Run.objects.filter(batch=older).update(not_before=None)
        work()
        assert not Group.objects.get(batch=older).is_newest
        last = batch_at(target, runs=1, cases=cases)
        work()
        assert list(Group.objects.filter(is_newest=True)) == [
            Group.objects.get(batch=last)
        ]

    def test_a_driver_that_breaks_is_our_fault_and_the_batch_goes_on(
        self, agent, monkeypatch
    ):
        def breaks(order, equipment):
            if order.number == 2:
                raise KeyError("oops")
            return finished()

        drive(monkeypatch, breaks)
        batch = batch_at(make_target(agent))
        work()
        assert_whole(batch)
        assert states(batch) == {"finished": 2, "failed": 1}
        run = Run.objects.get(batch=batch, state="failed")
        assert (run.error_kind, run.number) == ("ours", 2)
        assert "our fault" in run.sentence

    def test_a_handler_that_nobody_allows_any_more_is_a_failure_in_words(self, agent):
        stubs = {"tools": {"lookup": {"kind": "handler", "handler": "os:getcwd"}}}
        batch = batch_at(make_target(agent), runs=1, stubs=stubs)
        work()
        assert "EVALSITE_REPLAY_HANDLERS" in Run.objects.get(batch=batch).sentence

    def test_a_run_that_ended_its_worker_too_often_is_recorded_as_failed(
        self, agent, monkeypatch
    ):
        drive(monkeypatch, lambda order, equipment: finished())
        batch = batch_at(make_target(agent), runs=1)
        for _ in range(3):
            claim_run(lease_seconds=60)
            Run.objects.update(lease_until=Now() - timedelta(seconds=1))
        work()
        assert_whole(batch)
        run = Run.objects.get(batch=batch)
        assert (run.state, run.error_kind, batch.state) == ("failed", "crashed", "done")
        assert "ended its worker 3 times" in run.sentence

    def test_what_a_worker_did_that_lost_its_run_is_dropped(self, agent, monkeypatch):
        def loses(order, equipment):
            if equipment.claim.attempt == 1:
                Run.objects.update(lease_until=Now() - timedelta(seconds=1))
                claim_run(lease_seconds=-1)
            return finished()

        drive(monkeypatch, loses)
        batch = batch_at(make_target(agent), runs=1)
        work()
        assert_whole(batch)
        run = Run.objects.get(batch=batch)
        assert (run.state, run.attempt) == ("finished", 3)

    def test_a_signal_that_asked_for_an_experiment_comes_back_with_its_result(
        self, agent, project, owner, monkeypatch
    ):
        upload_traces(project, decay_trace(100, 90, 80, 70, 60))
        signal = Signal.objects.first()
        drive(monkeypatch, lambda order, equipment: finished())
        batch = batch_at(make_target(agent), runs=2)
        Batch.objects.filter(pk=batch.pk).update(signal=signal.pk)
        Signal.objects.filter(pk=signal.pk).update(
            state="decided",
            verdict="needs_experiment",
            decided_at=Now(),
            decided_by=owner,
        )
        work()
        batch.refresh_from_db()
        assert return_signals(now=batch.finished_at) == 0, "its scores are waited for"
        scored(project)
        assert return_signals(now=batch.finished_at) == 1
        entry = HistoryEntry.objects.filter(signal=signal).latest("pk")
        assert "“A batch” is done: 2 of 2 runs finished." in repr(vars(entry))
        # A decision after the batch asks for another experiment.
        Signal.objects.filter(pk=signal.pk).update(
            state="decided", verdict="needs_experiment", decided_at=Now()
        )
        assert return_signals(now=batch.finished_at + timedelta(hours=1)) == 0

    @pytest.mark.parametrize("state", ["cancelled", "stopped"])
    def test_a_signal_comes_back_from_an_experiment_that_ended_early(
        self, agent, project, owner, monkeypatch, state
    ):
        upload_traces(project, decay_trace(100, 90, 80, 70, 60))
        signal = Signal.objects.first()
        Signal.objects.filter(pk=signal.pk).update(
            state="decided",
            verdict="needs_experiment",
            decided_at=Now(),
            decided_by=owner,
        )

        def ends_with_its_first(order, equipment):
            assert stop_batch(
                batch_id=batch.pk, sentence="No more.", state=BatchState(state)
            )
            return finished()

        drive(monkeypatch, ends_with_its_first)
        batch = batch_at(make_target(agent), runs=3)
        Batch.objects.filter(pk=batch.pk).update(signal=signal.pk)
        assert return_signals(now=timezone.now() + timedelta(hours=1)) == 0
        work()
        assert return_signals(now=timezone.now() + timedelta(hours=1)) == 1
        told = HistoryEntry.objects.filter(signal=signal).latest("pk").note
        assert told.startswith(f"“A batch” was {state} after 1 run of 3, of which 1 ")
        assert "finished. No more." in told
        assert return_signals(now=timezone.now() + timedelta(hours=1)) == 0


class TestTargets:
    def test_local_code_runs_walled_and_its_breaches_are_kept(self, agent, settings):
        settings.REPLAY_FOLDERS = [str(PLANTED)]
        settings.REPLAY_CALLABLES = ["defects:reads_the_product"]
        new = NewTarget(
            name="Local",
            kind=TargetKind.CALLABLE,
            settings={"callable": "defects:reads_the_product"},
        )
        target = add_target(
            agent=agent, new=new, allowed=allowed_here(), user_id=None, now=NOW
        )
        batch = batch_at(target, runs=1)
        work()
        assert_whole(batch)
        run = Run.objects.get(batch=batch)
        assert run.level in {"namespaces", "landlock_seccomp"}, run.sentence
        assert (run.has_breach, batch.spent_calls) == (True, 1)
        assert run.effects[0]["kind"] == "file_read"
        assert "/proc/1/environ" in run.effects[0]["what"]
        assert Trace.everything.get().pk == run.trace_id

    def test_an_agent_elsewhere_is_answered_by_the_stubs_of_its_run_only(
        self, agent, monkeypatch
    ):
        tokens: list[str] = []

        def elsewhere(order, equipment):
            token = open_stubs(equipment.claim)
            tokens.append(token)
            assert [one.name for one in offered_tools(token=token)] == ["lookup"]
            for number in (7, 7, 8):
                given = {"number": number}
                answer_stub_call(token=token, tool="lookup", arguments=given, now=NOW)
            calls = seen_calls(equipment.claim)
            beyond = answer_stub_call(token=token, tool="lookup", arguments={}, now=NOW)
            assert beyond.stops
            assert seen_calls(equipment.claim) == calls
            assert [one.answer.result for one in calls[:1]] == ["open"]
            return finished("open", *calls)

        drive(monkeypatch, elsewhere)
        batch = batch_at(
            make_target(agent),
            runs=2,
            cases=[case_with_tool(agent, name="T")],
            limits=Limits(tool_calls=3),
        )
        work()
        assert_whole(batch)
        assert states(batch) == {"finished": 2}
        assert len(set(tokens)) == 2
        assert tokens[0] not in repr(list(Run.objects.values()))
        for token in [*tokens, "", "\ud800"]:
            with pytest.raises(NoSuchStubs):
                answer_stub_call(token=token, tool="lookup", arguments={}, now=NOW)
        trace = Trace.everything.first()
        assert trace.tool_call_count == 3
        assert trace.error_count >= 1

    def test_a_memory_test_is_one_trial_for_each_run(self, agent, settings):
        memory = {
            "facts": [
                {
                    "slug": "card",
                    "value": "27",
                    "telling": "My card ends in {value}.",
                    "probe": "What does my card end in?",
                }
            ],
            "depths": [1, 4],
            "repeats": 2,
        }
        with model_server(answer=remembers_two_turns) as server:
            batch = memory_batch(target_at(agent, server, settings), memory)
            work()
        assert_whole(batch)
        assert states(batch) == {"finished": 4}
        recalled = {
            (run.group.regime["depth"], run.number): run.judged["recalled"]
            for run in Run.objects.select_related("group")
        }
        assert recalled == {(1, 1): 1, (1, 2): 1, (4, 1): 0, (4, 2): 0}


def remembers_two_turns(body):
    """A model that looks at the last five messages only."""
    *_, asked = messages = body["messages"][-5:]
    if "What does my card" not in asked["content"]:
        return "Noted."
    return "It ends in 27." if "27" in repr(messages) else "I do not know."


def memory_batch(target, memory) -> Batch:
    return start_batch(
        version=current_version(target.pk),
        cases=[],
        new=NewBatch(
            name="Card number",
            plan=Plan(repeats=2, memory=memory),
            depths=tuple(memory["depths"]),
        ),
        user_id=None,
        now=NOW,
    )
