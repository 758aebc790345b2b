"""Live spans over real sockets into the queue, while processes are being killed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.live.models import LiveSpan, LiveTrace
from apps.review.models import HistoryEntry, Signal
from apps.screening.models import Screening
from apps.traces.models import BodyChunk, Step, Trace, Upload
from tests.conftest import ROOT
from tests.factories import make_project, make_user
from tests.flows.conftest import wait_until
from tests.flows.model_server import model_server
from tests.flows.web_server import Web
from tests.formats.otlp_files import agent, as_protobuf, call, span
from tests.soak import times

AGENTS = ROOT / "tests" / "flows" / "live_agents"
OUTPUTS = (112, 100, 86, 78, 70, 43)
PLAIN = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
FRAMEWORKS = {
    "openai_agents_run": ("agents", "openinference.instrumentation.openai_agents"),
    "langgraph_run": (
        "langgraph",
        "langchain_openai",
        "openinference.instrumentation.langchain",
    ),
    "pydantic_ai_run": ("pydantic_ai", "openai"),
}


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def skip_without(*modules: str) -> None:
    missing = [name for name in modules if not _is_there(name)]
    if missing:
        pytest.skip(f"Not installed (dependency group “live”): {', '.join(missing)}.")


def token_of(project) -> str:
    _, secret = create_token(
        project=project,
        name="exporter",
        scopes=[Scope.UPLOAD],
        user=None,
        now=timezone.now(),
    )
    return secret


@pytest.fixture
def project(transactional_db):
    return make_project(owner=make_user("olga"), name="Live")


@pytest.fixture
def token(project) -> str:
    return token_of(project)


@pytest.fixture
def web(processes, start, tmp_path):
    processes.environment |= {
        "EVALSITE_LIVE_SETTLE_SECONDS": "1",
        "EVALSITE_LIVE_QUIET_SECONDS": "3",
    }
    found = Web(processes.environment, tmp_path / "web.log", start=start)
    found.start()
    yield found
    found.kill()
    print((tmp_path / "web.log").read_text(errors="replace")[-4_000:])


@pytest.fixture
def exporter(web, token):
    """Runs a script of an agent whose exporter is set by the environment alone."""

    def run(script: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "OTEL_EXPORTER_OTLP_ENDPOINT": web.address,
            **header_of(token),
            **more,
        }
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(AGENTS / f"{script}.py"), *arguments],
            env=environment,
            stderr=subprocess.PIPE,
        )

    return run


def header_of(secret: str) -> dict[str, str]:
    """What an environment says to the exporter about who sends."""
    return {"OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{secret}"}


def assert_it_is_queued(project) -> None:
    """The one signal of a project is that of a billing agent whose outputs fall."""
    wait_until(
        lambda: Signal.objects.filter(project=project).exists(),
        seconds=60,
        what=f"the run of {project.name} is in the queue",
    )
    signal_row = Signal.objects.get(project=project, check_slug="output-decay")
    # LangGraph's nodes are steps of the graph, and nothing names an agent.
    assert signal_row.agent == "billing"
    assert signal_row.screening.evidence["series"]["values"] == list(OUTPUTS)


def finished(process: subprocess.Popen[bytes]) -> str:
    """What it wrote to stderr, once it has ended well."""
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()[-3_000:]
    return errors.decode()


def stored(project) -> int:
    return Trace.objects.filter(project=project).count()


def has_more_than(project, count: int):
    return lambda: stored(project) > count


def as_texts(outputs=OUTPUTS) -> str:
    return ",".join(map(str, outputs))


def run_of(number: int) -> list[dict]:
    spans = [
        span(1, name="run", lasts=60),
        agent(2, 1, "billing", lasts=50),
        *(call(at, 2, output) for at, output in enumerate(OUTPUTS, start=3)),
    ]
    return [{**one, "traceId": f"{number:032x}"} for one in spans]


def assert_everything_is_there_once(project, traces: int) -> None:
    upload = Upload.objects.get(project=project)
    assert stored(project) == upload.trace_count == traces
    assert Step.objects.filter(trace__project=project).count() == 8 * traces
    assert upload.step_count == 8 * traces
    assert BodyChunk.objects.filter(trace__project=project).count() == traces
    signals = Signal.objects.filter(project=project)
    assert signals.count() == upload.signal_count == traces
    assert HistoryEntry.objects.filter(signal__in=signals).count() == traces
    answered = Screening.objects.filter(project=project)
    assert answered.values("trace").distinct().count() == traces
    assert LiveTrace.objects.filter(due_at=None, failure="").count() == traces
    assert LiveSpan.objects.count() == 8 * traces


class TestTheOfficialExporter:
    @pytest.mark.slow
    def test_a_decaying_run_of_every_sender_ends_in_the_queue(
        self, project, processes, exporter, tmp_path
    ):
        """Each sender has a project of its own; the worker that starts is the same."""
        skip_without(*PLAIN)
        errors = finished(
            exporter("plain_exporter", as_texts(), **header_of("evs_wrong"))
        )
        assert "401" in errors
        assert LiveTrace.objects.count() == 0
        processes.worker()
        processes.beat(tmp_path)
        there = [name for name in FRAMEWORKS if all(map(_is_there, FRAMEWORKS[name]))]
        with ExitStack() as stack:

            def sent(name: str, script: str, *arguments: str, **more: str):
                sender = make_project(owner=project.members.get(), name=name)
                header = header_of(token_of(sender))
                return sender, exporter(script, *arguments, **more, **header)

            encodings = [
                sent(
                    compression,
                    "plain_exporter",
                    as_texts(),
                    OTEL_EXPORTER_OTLP_COMPRESSION=compression,
                )
                for compression in ("none", "gzip")
            ]
            frameworks = [
                sent(
                    script,
                    script,
                    MODEL_SERVER=stack.enter_context(model_server(OUTPUTS)),
                    OPENAI_API_KEY="none",
                )
                for script in there
            ]
            for _, sending in (*encodings, *frameworks):
                finished(sending)
        for sender, _ in (*encodings, *frameworks):
            assert_it_is_queued(sender)
        for sender, _ in encodings:
            assert Signal.objects.filter(project=sender).count() == 1
        for sender, _ in frameworks:
            trace = Trace.objects.get(project=sender)
            counted = (trace.model_call_count, trace.usage_known, trace.tool_call_count)
            assert counted == (6, 6, 5), sender.name
        if missing := sorted(set(FRAMEWORKS) - set(there)):
            pytest.skip(f"The frameworks of these are not installed: {missing}.")

    def test_it_sends_again_after_429_until_it_is_taken(
        self, project, processes, broker, exporter, web, token, tmp_path
    ):
        skip_without(*PLAIN)
        web.kill()
        processes.environment["EVALSITE_LIVE_MAX_PROJECT_WAITING_BYTES"] = "100"
        web.start()
        assert web.post(as_protobuf(*run_of(1)), token) == 200
        assert web.post(as_protobuf(*run_of(2)), token) == 429
        # A worker without a tick: it is ready, and it assembles nothing yet.
        processes.worker()
        wait_until(
            lambda: any(one["cmd"] == "brpop" for one in broker.client_list()),
            seconds=60,
            what="the worker listens",
        )
        sending = exporter(
            "plain_exporter", as_texts(), OTEL_EXPORTER_OTLP_TIMEOUT="60"
        )
        wait_until(
            lambda: (tmp_path / "web.log").read_text().count(" 429 ") > 1,
            seconds=30,
            what="the exporter was refused",
        )
        assert stored(project) == 0
        processes.beat(tmp_path)
        finished(sending)
        wait_until(
            lambda: stored(project) == 2, seconds=60, what="both runs are stored"
        )
        assert Signal.objects.filter(project=project).count() == 2


def test_a_body_in_chunks_without_a_length_is_taken_whole_and_bounded(
    project, web, token, tmp_path
):
    body = as_protobuf(*run_of(1))
    pieces = iter([body[:40], body[40:]])
    assert web.post(pieces, token) == 200
    assert LiveSpan.objects.count() == 8
    endless = (bytes(1_000_000) for _ in range(50))
    # It is answered, and hung up on, before it has said everything.
    with suppress(OSError):
        web.post(endless, token)
    wait_until(
        lambda: " 413 " in (tmp_path / "web.log").read_text(),
        seconds=10,
        what="it was refused",
    )


class TestKilling:
    def test_a_web_process_that_dies_right_after_200_has_lost_nothing(
        self, project, processes, web, token, tmp_path
    ):
        for number in range(1, 6):
            assert web.post(as_protobuf(*run_of(number)), token) == 200
            web.kill()
            web.start()
        processes.worker()
        processes.beat(tmp_path)
        wait_until(lambda: stored(project) == 5, seconds=60, what="all are stored")
        assert_everything_is_there_once(project, 5)

    @pytest.mark.slow
    def test_a_worker_that_is_killed_again_and_again_loses_and_doubles_nothing(
        self, project, processes, web, token, tmp_path
    ):
        kills = times(2, soak=8)
        traces = 60 * kills
        processes.beat(tmp_path)
        held = LiveTrace.objects.filter(due_at__isnull=False, lease_until__gt=Now())
        for number in range(1, traces + 1):
            assert web.post(as_protobuf(*run_of(number)), token) == 200
        for _ in range(kills):
            worker = processes.worker()
            wait_until(
                has_more_than(project, stored(project)), seconds=60, what="it assembles"
            )
            processes.kill_at_work(worker, held.exists)
            assert stored(project) < traces, "The kill came too late."
        processes.worker()
        wait_until(
            lambda: not LiveTrace.objects.filter(due_at__isnull=False).exists(),
            seconds=90,
            what="all are stored after all",
        )
        assert_everything_is_there_once(project, traces)

    @pytest.mark.slow
    def test_two_workers_at_once_store_each_trace_once(
        self, project, processes, web, token, tmp_path
    ):
        traces = 60
        processes.beat(tmp_path)
        processes.worker()
        processes.worker()
        for number in range(1, traces + 1):
            root, *rest = run_of(number)
            for part in ([root, *rest[:3]], rest[2:], [root]):
                assert web.post(as_protobuf(*part), token) == 200
        wait_until(
            lambda: (
                stored(project) == traces
                and not LiveTrace.objects.filter(due_at__isnull=False).exists()
            ),
            seconds=90,
            what="all are stored",
        )
        assert_everything_is_there_once(project, traces)

    def test_a_broker_that_is_stopped_and_forgets_everything_loses_nothing(
        self, project, processes, broker, web, token, tmp_path
    ):
        broker_id = int(broker.info("server")["process_id"])
        os.kill(broker_id, signal.SIGSTOP)
        begun = time.monotonic()
        try:
            assert web.post(as_protobuf(*run_of(1)), token) == 200
        finally:
            os.kill(broker_id, signal.SIGCONT)
        assert time.monotonic() - begun < 5
        processes.worker()
        processes.beat(tmp_path)
        broker.flushall()
        wait_until(lambda: stored(project) == 1, seconds=60, what="it is stored")
        assert_everything_is_there_once(project, 1)
