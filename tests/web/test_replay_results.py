"""What pages of recorded things say of replays: traces, tasks, agents, signals."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.models import Project, User
from apps.agents.models import Agent
from apps.agents.operations import merge_agents
from apps.pipeline.experiments import return_signals
from apps.replays.models import Batch, Group, Run
from apps.replays.transitions import ENDED, BatchState
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.transitions import Verdict
from apps.scoring.models import AgentTaskScore
from apps.traces.models import Trace
from apps.verdicts.models import AgentVerdict
from apps.verdicts.patterns import Target, units_of
from tests.factories import NOW
from tests.replays.desks import make_desk_alone
from tests.replays.ended import decided
from tests.replays.making import (
    make_frozen_case,
    make_memory_batch,
    new_batch,
    run_out,
)
from tests.replays.rows import make_case
from tests.scored import scored
from tests.web.visiting import text, url


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_desk_alone)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture
def agent(project):
    return Agent.objects.get(project=project, key="memory")


@pytest.fixture
def batch(project):
    return Batch.objects.get(name="Alone")


def run_of(batch: Batch, number: int) -> Run:
    return Run.objects.get(batch=batch, number=number)


class TestOtherPages:
    def test_a_trace_of_a_replay_says_so_and_is_not_checked(self, web, project, batch):
        run = run_of(batch, 5)
        page = text(web.get(url(project, "trace", run.trace_id)))
        assert url(project, "replay-run", run.pk) in page
        assert "with a breach" in page
        assert "Checks do not run over replays" in page
        assert "Answers of the checks" not in page
        assert "Correct task and trial" not in page
        marks = page.split('class="transcript')[1].split("</ol>")[0]
        for word in ("recorded", "miss", "static"):
            assert f"{word}</span>" in marks
        assert "trials <a" in page
        placed = web.post(url(project, "trace-task", run.trace_id), {"task": "x"})
        assert placed.status_code == 404

    def test_its_task_and_forks_show_the_runs_as_trials(self, web, project, batch):
        task = Group.objects.get(batch=batch).task_id
        page = text(web.get(url(project, "task", task)))
        assert "each a run alone" in page
        assert "trial 5</a>" in page
        assert "Correct it" not in page
        assert "Signals</th>" not in page
        forks = text(web.get(url(project, "task-forks", task)))
        assert "5 trials" in forks
        assert url(project, "replay-group", batch.pk, 1) in forks
        assert (
            web.post(url(project, "task-rename", task), {"name": "x"}).status_code
            == 404
        )

    def test_what_was_recorded_is_not_mixed_with_replays(
        self, web, project, agent, batch
    ):
        task = Group.objects.get(batch=batch).task_id
        assert AgentTaskScore.objects.filter(agent=agent, task=task).exists()
        page = text(web.get(url(project, "agent", agent.pk)))
        tasks = page.split('aria-labelledby="tasks"')[1].split("</section>")[0]
        assert url(project, "task", task) not in tasks
        decisions = page.split('aria-labelledby="decisions"')[1].split("</section>")[0]
        assert "refunds" not in decisions
        recorded = text(web.get(url(project, "trace", Trace.objects.earliest("pk").pk)))
        assert "Alone:" not in recorded
        assert "Answers of the checks" in recorded

    def test_patterns_are_searched_in_what_was_recorded(self, project, batch):
        task = Group.objects.get(batch=batch).task_id
        AgentTaskScore.objects.filter(task=task).update(consistency="drifting")
        alone = set(Trace.everything.filter(task=task).values_list("pk", flat=True))
        for target in Target:
            units = list(units_of(project.pk, target))
            assert units
            found = {int(unit.id.split("/")[0]) for unit in units}
            assert not found & alone

    def test_the_page_of_an_agent_has_a_part_on_it_alone(
        self, web, project, agent, batch
    ):
        page = text(web.get(url(project, "agent", agent.pk)))
        part = page.split('aria-labelledby="alone"')[1].split("</section>")[0]
        assert "Alone, it tried to reach outside in 1 of 5" in part
        assert "alone it decides “refunds” in 4 of 5" in part
        assert f"?agent={agent.pk}" in part
        listed = text(web.get(url(project, "agents")))
        assert "5 runs" in listed
        assert "1 breach" in listed
        assert "not run" in listed

    def test_the_newest_memory_test_is_linked_from_the_agent(self, web, project, agent):
        test = make_memory_batch(project, agent)
        page = text(web.get(url(project, "agent", agent.pk)))
        assert url(project, "replay-batch", test.pk) in page
        group = text(web.get(url(project, "replay-group", test.pk, 2)))
        assert "lost: dropped by the summariser" in group
        assert "<h1>Depth 6</h1>" in group
        assert "contract broke" not in group
        assert "stable" not in group
        task = text(
            web.get(
                url(project, "task", Group.objects.get(batch=test, number=2).task_id)
            )
        )
        assert "What became of each fact" in task
        assert "Not scored yet" not in task
        for word in ("table", "End to end", "wrong", "unstable"):
            assert f">{word}" not in task.split("</header>")[1]
        lost = Run.objects.get(batch=test, group__number=2, number=5)
        run = text(web.get(url(project, "replay-run", lost.pk)))
        assert "The summary after turn 6 does not name it." in run

    def test_an_agent_that_only_replays_show_to_be_bad_is_named_as_such(
        self, web, project
    ):
        triage = Agent.objects.get(project=project, key="triage")
        wrong = new_batch(triage, make_frozen_case(triage, input="Where?"), name="T")
        run_out(wrong, lambda run: decided({"route": "nowhere"}))
        scored(project)
        page = text(web.get(url(project, "overview")))
        row = page.split('class="masked-rows"')[1].split("</ul>")[0]
        mine = row.split(">triage<")[1].split("</li>")[0]
        assert "only in replays" in mine
        assert "Alone, contracts broke in 5 of 5" in mine
        listed = text(web.get(url(project, "agents"))).split("<tbody>")[1]
        row = listed.split(">triage</a>")[1].split("</tr>")[0]
        assert "red alone" in row
        assert ">masked</span>" in row
        assert listed.index(">triage</a>") < listed.index(">clerk</a>")
        verdict = AgentVerdict.objects.get(agent=triage)
        assert (verdict.masked_traces, verdict.hidden_alone) == (0, "red")

    def test_a_signal_that_needs_an_experiment_offers_one_and_shows_its_result(
        self, web, project, owner, agent
    ):
        signal = Signal.objects.filter(project=project, agent="planner").first()
        page = text(web.get(url(project, "signal", signal.pk)))
        assert "experiment-title" not in page
        held = review.claim(signal_id=signal.pk, user=owner)
        review.decide(
            signal_id=signal.pk,
            user=owner,
            base_version=held.version,
            decision=review.DecisionInput(verdict=Verdict.NEEDS_EXPERIMENT),
        )
        page = text(web.get(url(project, "signal", signal.pk)))
        planner = Agent.objects.get(project=project, key="planner")
        assert f"?signal={signal.pk}&amp;agent={planner.pk}" in page
        assert "No batch was started for it yet." in page
        decided_queue = url(project, "queue") + "?view=all"
        assert "experiment done" not in text(web.get(decided_queue))
        trace = Trace.objects.get(pk=signal.trace_id)
        case = make_frozen_case(planner, trace, input="Plan it.")
        tried = new_batch(planner, case, name="Tried", signal=signal.pk)
        run_out(tried, lambda run: decided("no refund"))
        scored(project)
        page = text(web.get(url(project, "signal", signal.pk)))
        part = page.split('id="experiment-title"')[1].split("</section>")[0]
        assert url(project, "replay-batch", tried.pk) in part
        assert "alone it decides “no refund” in 5 of 5" in part
        assert "experiment done" in text(web.get(decided_queue))
        assert "It came back" not in page
        now = Batch.objects.get(pk=tried.pk).finished_at + timedelta(hours=1)
        assert return_signals(now=now) == 1
        assert "It came back with the result" in text(
            web.get(url(project, "signal", signal.pk))
        )
        assert "back from an experiment" in text(web.get(url(project, "queue")))

    @pytest.mark.parametrize("state", BatchState)
    def test_a_batch_for_a_signal_that_waited_for_none_brings_nothing_back(
        self, web, project, agent, state
    ):
        signal = Signal.objects.filter(project=project, agent="planner").first()
        planner = Agent.objects.get(project=project, key="planner")
        batch = new_batch(planner, make_case(planner), signal=signal.pk)
        Batch.objects.filter(pk=batch.pk).update(state=state.value, finished_at=NOW)
        queue = text(web.get(url(project, "queue")))
        assert (f"experiment {state}" in queue) == (state in ENDED)
        assert "back from an experiment" not in queue
        page = text(web.get(url(project, "signal", signal.pk)))
        assert "experiment-title" in page
        assert "It came back" not in page

    def test_replays_of_an_agent_that_was_merged_count_for_the_other(
        self, web, project, agent, batch, owner
    ):
        writer = Agent.objects.get(project=project, key="writer")
        merge_agents(agent=agent, into=writer, user_id=owner.pk, now=NOW)
        scored(project)
        part = text(web.get(url(project, "agent", writer.pk)))
        part = part.split('aria-labelledby="alone"')[1].split("</section>")[0]
        assert "alone it decides “refunds” in 4 of 5" in part
        group = text(web.get(url(project, "replay-group", batch.pk, 1)))
        assert "alone it decides “refunds” in 4 of 5" in group
        case = Group.objects.get(batch=batch).case
        for asked in (agent, writer):
            plan = text(web.get(url(project, "replay-plan") + f"?agent={asked.pk}"))
            assert "Run writer alone" in plan
            assert f'value="{case.pk}"' in plan
            assert batch.target_version.target.name in plan
        for listed in ("replays", "replay-cases"):
            page = text(web.get(url(project, listed) + f"?agent={writer.pk}"))
            assert str(batch if listed == "replays" else case) in page
            assert f'<option value="{agent.pk}"' not in page.split("</form>")[0]

    def test_a_new_batch_of_a_merged_agent_takes_the_place_of_its_older_one(
        self, project, agent, batch, owner
    ):
        writer = Agent.objects.get(project=project, key="writer")
        merge_agents(agent=agent, into=writer, user_id=owner.pk, now=NOW)
        again = new_batch(agent, Group.objects.get(batch=batch).case, name="Again")
        assert again.agent == writer
        run_out(again, lambda run: decided({"route": "billing"}))
        assert [one.batch for one in Group.objects.filter(is_newest=True)] == [again]

    def test_a_case_of_a_trace_without_a_task_is_compared_with_that_trace(
        self, web, project, agent
    ):
        trace = Trace.objects.filter(project=project, task__key="ticket 1").latest("pk")
        Trace.objects.filter(pk=trace.pk).update(task=None)
        case = make_frozen_case(agent, trace, input="Alone?")
        one = new_batch(agent, case, name="One", repeats=1)
        run_out(one, lambda run: decided("refunds"))
        scored(project)
        page = text(web.get(url(project, "replay-batch", one.pk)))
        assert "In the pipeline it decided" in page
        assert "in 1 of 1; alone it decides “refunds” in 1 of 1" in page
