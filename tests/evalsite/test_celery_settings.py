"""Short work has a queue of its own, so that long reading does not hold it up."""

from __future__ import annotations

from evalsite import celery_settings
from evalsite.celery import app


def test_every_frequent_task_is_in_the_short_queue():
    frequent = {
        entry["task"]
        for entry in celery_settings.beat_schedule.values()
        if entry["schedule"] < 600
    }
    routes = celery_settings.task_routes
    assert frequent == {
        name
        for name, route in routes.items()
        if route["queue"] == celery_settings.SHORT
    }
    assert "pipeline.parse_upload" not in routes
    assert routes["pipeline.run_replays"] == {"queue": celery_settings.REPLAYS}


def test_a_worker_without_more_words_serves_every_queue():
    app.loader.import_default_modules()
    assert set(app.amqp.queues) == {
        celery_settings.LONG,
        celery_settings.SHORT,
        celery_settings.REPLAYS,
    }
    assert set(celery_settings.task_routes) < set(app.tasks)
