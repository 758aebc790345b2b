"""The pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from apps.web.views import (
    accounts,
    health,
    projects,
    queue,
    reference,
    reports,
    resumable,
    settings,
    signals,
    tasks,
    traces,
    uploads,
)

upload_urls = [
    path("", uploads.uploads, name="uploads"),
    path("parts/", resumable.parts, name="upload-parts"),
    path("parts/<str:part_id>/", resumable.part, name="upload-part"),
    path("parts/<str:part_id>/remove/", uploads.forget_part, name="upload-part-remove"),
    path("<int:upload_id>/", uploads.upload, name="upload"),
    path("<int:upload_id>/progress/", uploads.progress, name="upload-progress"),
    path("<int:upload_id>/raw/", uploads.raw, name="upload-raw"),
    path("<int:upload_id>/read-again/", uploads.read_again, name="upload-read-again"),
]

trace_urls = [
    path("", traces.traces, name="traces"),
    path("<int:trace_id>/", traces.trace, name="trace"),
    path("<int:trace_id>/steps/<int:seq>/", traces.step_body, name="step-body"),
    path("<int:trace_id>/download/", traces.download, name="trace-download"),
    path("<int:trace_id>/task/", tasks.place_trace, name="trace-task"),
    path("<int:trace_id>/task/undo/", tasks.undo_place, name="trace-task-undo"),
]

task_urls = [
    path("", tasks.tasks, name="tasks"),
    path("<int:task_id>/", tasks.task, name="task"),
    path("<int:task_id>/rename/", tasks.rename, name="task-rename"),
    path("<int:task_id>/join/", tasks.join, name="task-join"),
    path("<int:task_id>/part/", tasks.part, name="task-part"),
]

signal_urls = [
    path("", signals.signal, name="signal"),
    path("claim/", signals.claim, name="signal-claim"),
    path("release/", signals.release, name="signal-release"),
    path("heartbeat/", signals.heartbeat, name="signal-heartbeat"),
    path("draft/", signals.draft, name="signal-draft"),
    path("decide/", signals.decide, name="signal-decide"),
    path("undo/", signals.undo, name="signal-undo"),
]

report_urls = [
    path("", reports.reports, name="reports"),
    path("<int:report_id>/", reports.report, name="report"),
    path("<int:report_id>/report.md", reports.as_markdown, name="report-markdown"),
    path("<int:report_id>/report.pdf", reports.as_pdf, name="report-pdf"),
    path("<int:report_id>/report.json", reports.as_json, name="report-json"),
]

settings_urls = [
    path("", settings.project_settings, name="project-settings"),
    path("members/", settings.add_member, name="member-add"),
    path("members/<int:user_id>/", settings.change_member, name="member-change"),
    path("members/<int:user_id>/link/", settings.member_link, name="member-link"),
    path("privacy/", settings.change_privacy, name="privacy-change"),
    path("tokens/", settings.create_token, name="token-create"),
    path("tokens/<int:token_id>/revoke/", settings.revoke_token, name="token-revoke"),
]

project_urls: list[URLPattern | URLResolver] = [
    path("", projects.overview, name="overview"),
    path("uploads/", include(upload_urls)),
    path("traces/", include(trace_urls)),
    path("tasks/", include(task_urls)),
    path("queue/", queue.queue, name="queue"),
    path("queue/next/", queue.review_next, name="queue-next"),
    path("queue/undo/", queue.undo_last, name="queue-undo"),
    path("signals/<int:signal_id>/", include(signal_urls)),
    path("reports/", include(report_urls)),
    path("settings/", include(settings_urls)),
]

urlpatterns = [
    path("", projects.home, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("sign-in/", accounts.SignIn.as_view(), name="sign-in"),
    path("sign-in/<str:secret>/", accounts.sign_in_by_link, name="sign-in-link"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("account/", accounts.account, name="account"),
    path("account/password/", accounts.set_password, name="account-password"),
    path("projects/", projects.projects, name="projects"),
    path("projects/<slug:slug>/", include(project_urls)),
    path("checks/", reference.checks, name="checks"),
    path("checks/<slug:check_slug>/", reference.check, name="check"),
    path("formats/", reference.formats, name="formats"),
    path("privacy/", reference.privacy, name="privacy"),
    path("api/", reference.api, name="api"),
]
