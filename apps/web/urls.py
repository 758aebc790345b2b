"""The pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from apps.web.views import (
    accounts,
    agent_definitions,
    agent_files,
    agent_outcomes,
    agents,
    blind,
    calibration,
    checks,
    compare,
    contracts,
    forks,
    health,
    patterns,
    projects,
    queue,
    reference,
    regression,
    replay_cases,
    replay_freezing,
    replay_memory,
    replay_plan,
    replay_targets,
    replays,
    reports,
    resumable,
    sets,
    settings,
    shadows,
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
    path("<int:trace_id>/freeze/", replay_freezing.freeze_one, name="trace-freeze"),
    path("<int:trace_id>/download/", traces.download, name="trace-download"),
    path("<int:trace_id>/task/", tasks.place_trace, name="trace-task"),
    path("<int:trace_id>/task/undo/", tasks.undo_place, name="trace-task-undo"),
]

task_urls = [
    path("", tasks.tasks, name="tasks"),
    path("<int:task_id>/", tasks.task, name="task"),
    path("<int:task_id>/rename/", tasks.rename, name="task-rename"),
    path("<int:task_id>/join/", tasks.join, name="task-join"),
    path("<int:task_id>/freeze/", replay_freezing.freeze_all, name="task-freeze"),
    path("<int:task_id>/part/", tasks.part, name="task-part"),
    path("<int:task_id>/forks/", forks.forks, name="task-forks"),
    path("<int:task_id>/note/", forks.note, name="task-note"),
    path("<int:task_id>/note/withdraw/", forks.withdraw, name="task-note-withdraw"),
]

set_urls = [
    path("", sets.sets, name="sets"),
    path("new/", sets.new_set, name="set-new"),
    path("<slug:set_slug>/", sets.trace_set, name="trace-set"),
    path("<slug:set_slug>/rename/", sets.rename, name="set-rename"),
    path("<slug:set_slug>/delete/", sets.delete, name="set-delete"),
    path("<slug:set_slug>/baseline/", sets.baseline, name="set-baseline"),
]

compare_urls = [
    path("", compare.compare, name="compare"),
    path("comparison.json", compare.as_json, name="compare-json"),
    path("comparison.md", compare.as_markdown, name="compare-markdown"),
]

signal_urls = [
    path("", signals.signal, name="signal"),
    path("claim/", signals.claim, name="signal-claim"),
    path("release/", signals.release, name="signal-release"),
    path("heartbeat/", signals.heartbeat, name="signal-heartbeat"),
    path("draft/", signals.draft, name="signal-draft"),
    path("decide/", signals.decide, name="signal-decide"),
    path("undo/", signals.undo, name="signal-undo"),
    path("keep-quiet/", regression.keep_quiet, name="signal-keep-quiet"),
]

blind_urls = [
    path("", blind.look, name="blind"),
    path("claim/", blind.claim, name="blind-claim"),
    path("release/", blind.release, name="blind-release"),
    path("heartbeat/", blind.heartbeat, name="blind-heartbeat"),
    path("draft/", blind.draft, name="blind-draft"),
    path("decide/", blind.decide, name="blind-decide"),
    path("undo/", blind.undo, name="blind-undo"),
    path("reveal/", blind.reveal, name="blind-reveal"),
]

shadow_urls = [
    path("", shadows.shadow, name="shadow"),
    path("cancel/", shadows.cancel, name="shadow-cancel"),
    path("adopt/", shadows.adopt_shadow, name="shadow-adopt"),
]

regression_urls = [
    path("", regression.regression, name="regression"),
    path("<int:case_id>/rename/", regression.rename, name="case-rename"),
    path("<int:case_id>/retire/", regression.retire, name="case-retire"),
    path("<int:case_id>/restore/", regression.restore, name="case-restore"),
]

check_urls: list[URLPattern | URLResolver] = [
    path("", checks.project_checks, name="project-checks"),
    path("<slug:check_slug>/", checks.project_check, name="project-check"),
    path("<slug:check_slug>/adopt/", shadows.adopt_again, name="check-adopt"),
    path("<slug:check_slug>/pause/", shadows.pause, name="check-pause"),
    path("<slug:check_slug>/shadow/", shadows.shadows, name="shadows"),
    path("<slug:check_slug>/shadow/<int:shadow_id>/", include(shadow_urls)),
    path("<slug:check_slug>/calibration/", calibration.calibration, name="calibration"),
]

contract_urls = [
    path("", contracts.contracts, name="contracts"),
    path("new/", contracts.new_contract, name="contract-new"),
    path("<slug:definition_slug>/", contracts.contract, name="contract"),
    path("<slug:definition_slug>/edit/", contracts.edit_contract, name="contract-edit"),
    path(
        "<slug:definition_slug>/state/", contracts.change_state, name="contract-state"
    ),
]

one_agent_urls = [
    path("rename/", agents.rename, name="agent-rename"),
    path("tools/", agents.name_tools, name="agent-tools"),
    path("remove/", agents.remove, name="agent-remove"),
    path("merge/", agents.merge, name="agent-merge"),
    path("names/", agents.give_name, name="agent-name"),
    path("decision/", agent_definitions.decision, name="agent-decision"),
    path("restore/", agent_definitions.restore, name="agent-restore"),
    path("contracts/new/", agent_definitions.new_contract, name="agent-contract-new"),
    path("contracts/<int:at>/", agent_definitions.edit_contract, name="agent-contract"),
    path(
        "contracts/<int:at>/remove/",
        agent_definitions.remove_contract,
        name="agent-contract-remove",
    ),
]

agent_urls: list[URLPattern | URLResolver] = [
    path("", agents.agents, name="agents"),
    path("new/", agents.new_agent, name="agent-new"),
    path("file/", agent_files.definitions_file, name="agent-file"),
    path("definitions.yaml", agent_files.as_yaml, name="agent-yaml"),
    path("outcomes/", agent_outcomes.outcomes, name="agent-outcomes"),
    path(
        "outcomes/remove/",
        agent_outcomes.remove_expectation,
        name="agent-outcomes-remove",
    ),
    path(
        "outcomes/restore/",
        agent_outcomes.restore_outcomes,
        name="agent-outcomes-restore",
    ),
    path(
        "outcomes/decision/",
        agent_outcomes.whole_decision,
        name="agent-outcomes-decision",
    ),
    path("<int:agent_id>/", agents.agent, name="agent"),
    path("<int:agent_id>/", include(one_agent_urls)),
]

target_urls = [
    path("", replay_targets.target, name="replay-target"),
    path("rename/", replay_targets.rename, name="replay-target-rename"),
    path("key/", replay_targets.set_key, name="replay-target-key"),
    path("again/", replay_targets.use_again, name="replay-target-again"),
    path("retire/", replay_targets.retire, name="replay-target-retire"),
]

frozen_urls = [
    path("", replay_cases.cases, name="replay-cases"),
    path("cases.jsonl", replay_cases.as_jsonl, name="replay-cases-jsonl"),
    path("file/", replay_cases.add_file, name="replay-cases-file"),
    path("chosen/", replay_cases.chosen, name="replay-cases-chosen"),
    path("new/", replay_cases.new_case, name="replay-case-new"),
    path("<int:frozen_id>/", replay_cases.case, name="replay-case"),
    path("<int:frozen_id>/rename/", replay_cases.rename, name="replay-case-rename"),
    path("<int:frozen_id>/retire/", replay_cases.retire, name="replay-case-retire"),
]

replay_urls: list[URLPattern | URLResolver] = [
    path("", replays.replays, name="replays"),
    path("batches/<int:batch_id>/", replays.batch, name="replay-batch"),
    path(
        "batches/<int:batch_id>/progress/",
        replays.progress,
        name="replay-batch-progress",
    ),
    path("batches/<int:batch_id>/cancel/", replays.cancel, name="replay-batch-cancel"),
    path("batches/<int:batch_id>/resume/", replays.resume, name="replay-batch-resume"),
    path(
        "batches/<int:batch_id>/runs.jsonl", replays.as_jsonl, name="replay-batch-jsonl"
    ),
    path(
        "batches/<int:batch_id>/groups/<int:number>/",
        replays.group,
        name="replay-group",
    ),
    path("runs/<int:run_id>/", replays.run, name="replay-run"),
    path("targets/", replay_targets.targets, name="replay-targets"),
    path("targets/new/", replay_targets.new_target, name="replay-target-new"),
    path("targets/<int:target_id>/", include(target_urls)),
    path("cases/", include(frozen_urls)),
    path("plan/", replay_plan.plan, name="replay-plan"),
    path("memory/", replay_memory.memory, name="replay-memory"),
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
    path("blind/", calibration.change_blind_percent, name="blind-percent"),
    path("blind/withdraw/", calibration.withdraw_blind_looks, name="blind-withdraw"),
    path("tokens/", settings.create_token, name="token-create"),
    path("tokens/<int:token_id>/revoke/", settings.revoke_token, name="token-revoke"),
]

project_urls: list[URLPattern | URLResolver] = [
    path("", projects.overview, name="overview"),
    path("scoring/", projects.scoring_state, name="scoring-state"),
    path("uploads/", include(upload_urls)),
    path("traces/", include(trace_urls)),
    path("tasks/", include(task_urls)),
    path("patterns/", patterns.patterns, name="patterns"),
    path("agents/", include(agent_urls)),
    path("compare/", include(compare_urls)),
    path("sets/", include(set_urls)),
    path("queue/", queue.queue, name="queue"),
    path("queue/next/", queue.review_next, name="queue-next"),
    path("queue/undo/", queue.undo_last, name="queue-undo"),
    path("signals/<int:signal_id>/", include(signal_urls)),
    path("blind/<int:look_id>/", include(blind_urls)),
    path("calibration/", calibration.calibrations, name="calibrations"),
    path("checks/", include(check_urls)),
    path("contracts/", include(contract_urls)),
    path("regression/", include(regression_urls)),
    path("replays/", include(replay_urls)),
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
    path("checks/", checks.checks, name="checks"),
    path("checks/<slug:check_slug>/", checks.check, name="check"),
    path("formats/", reference.formats, name="formats"),
    path("privacy/", reference.privacy, name="privacy"),
    path("api/", reference.api, name="api"),
]
