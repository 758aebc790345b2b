"""Settings of Celery, each chosen so that a killed process loses and doubles nothing.

Messages are acknowledged after the work and given back when a child dies. The claim
on the database row, not the message, decides who works; so a second delivery is
harmless and a lost one is put back by `resume_stuck`.
"""

from __future__ import annotations

from django.conf import settings
from kombu import Queue

# Reading a large file keeps a process busy for minutes. What is short and urgent has a
# queue of its own, which one more worker serves alone. Replays wait for agents elsewhere,
# so workers of their own serve their queue. A worker that is told no queue serves all.
LONG, SHORT, REPLAYS = "celery", "short", "replays"
task_default_queue = LONG
task_queues = [Queue(LONG), Queue(SHORT), Queue(REPLAYS)]
task_routes: dict[str, dict[str, str]] = {
    f"pipeline.{name}": {"queue": SHORT}
    for name in (
        "assemble_live_traces",
        "forget_live_spans",
        "release_expired_claims",
        "resume_stuck",
        "wake_projects_behind",
        "wake_projects_to_score",
        "wake_replays",
    )
}
task_routes["pipeline.run_replays"] = {"queue": REPLAYS}

broker_url = settings.REDIS_URL
broker_connection_retry_on_startup = True
broker_transport_options = {
    "visibility_timeout": 3600,
    "unacked_restore_interval": 2,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 2,
    "socket_timeout": 4,
}
result_backend = None
task_ignore_result = True
task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
worker_cancel_long_running_tasks_on_connection_loss = False
# A new child on a busy machine may need longer than the usual 4 s to say that it is up,
# and would be ended just before.
worker_proc_alive_timeout = 30.0
task_serializer = "json"
accept_content = ["json"]
task_publish_retry = False
beat_schedule = {
    "resume-stuck": {
        "task": "pipeline.resume_stuck",
        "schedule": 5.0,
        # A busy worker finds one of these waiting, not an hour's worth.
        "options": {"expires": 5},
    },
    "assemble-live-traces": {
        "task": "pipeline.assemble_live_traces",
        "schedule": 1.0,
        "options": {"expires": 1},
    },
    "forget-live-spans": {
        "task": "pipeline.forget_live_spans",
        "schedule": 300.0,
        "options": {"expires": 300},
    },
    "release-expired-claims": {
        "task": "pipeline.release_expired_claims",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "wake-projects-behind": {
        "task": "pipeline.wake_projects_behind",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "wake-projects-to-score": {
        "task": "pipeline.wake_projects_to_score",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "wake-replays": {
        "task": "pipeline.wake_replays",
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "remove-abandoned-files": {
        "task": "pipeline.remove_abandoned_files",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
}
