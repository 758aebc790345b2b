"""URLs of the JSON door; every one names the project of the token."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.urls import include, path

from apps.api import views

project_urls = [
    path("uploads/", login_not_required(views.Uploads.as_view()), name="api-uploads"),
    path(
        "uploads/<int:upload_id>/",
        login_not_required(views.OneUpload.as_view()),
        name="api-upload",
    ),
    path("signals/", login_not_required(views.Signals.as_view()), name="api-signals"),
    path("reports/", login_not_required(views.Reports.as_view()), name="api-reports"),
    path(
        "reports/<int:report_id>/",
        login_not_required(views.OneReport.as_view()),
        name="api-report",
    ),
]

urlpatterns = [path("projects/<slug:slug>/", include(project_urls))]
