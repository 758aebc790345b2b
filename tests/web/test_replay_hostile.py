"""What hostile models answer is shown as text on every page of replays, and does nothing."""

from __future__ import annotations

import json

from django.urls import reverse

from apps.replays.models import Batch, Run
from tests.model_server import model_server
from tests.model_server.answers import Answer
from tests.replays.alone import (
    assert_whole,
    batch_at,
    case_with_tool,
    states,
    target_at,
    work,
)
from tests.replays.rows import make_agent
from tests.scored import scored
from tests.web.hostile import TEXTS
from tests.web.visiting import assert_inert, url

ANSWERS = [
    answer
    for text in TEXTS.values()
    for answer in (
        Answer(tools=((text[:50], {text: [text]}, text[:100]),)),
        json.dumps({text: text}) if len(text) < 500 else text,
    )
]


def pages_of(project, batch: Batch) -> list[str]:
    found = [
        url(project, name, batch.pk)
        for name in ("replay-batch", "replay-batch-progress")
    ]
    found.append(url(project, "replay-group", batch.pk, 1))
    for run in Run.objects.filter(batch=batch):
        found.append(url(project, "replay-run", run.pk))
        found.append(url(project, "trace", run.trace_id))
    return found


def test_whatever_a_model_answers_is_only_text_on_the_pages_of_its_runs(
    transactional_db, project, web, settings, monkeypatch
):
    monkeypatch.setattr("celery.current_app.send_task", lambda *_, **__: None)
    settings.REPLAY_KEYS = [b"k" * 32]
    agent = make_agent(project)
    with model_server("in_turn", answers=ANSWERS) as server:
        target = target_at(agent, server, settings)
        batch = batch_at(target, runs=len(TEXTS), cases=[case_with_tool(agent)])
        work()
    assert_whole(batch)
    assert states(batch) == {"finished": len(TEXTS)}
    scored(project)
    for address in pages_of(project, batch):
        answer = web.get(address)
        assert answer.status_code == 200, address
        assert_inert(answer.content.decode())
    lines = web.get(reverse("replay-batch-jsonl", args=[project.slug, batch.pk]))
    rows = [json.loads(one) for one in b"".join(lines.streaming_content).splitlines()]
    assert len(rows) == len(TEXTS)
