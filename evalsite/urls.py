"""All URLs: pages, the JSON door, and health."""

from __future__ import annotations

from django.urls import include, path

from apps.api import otlp
from apps.api.urls import stub_urls

urlpatterns = [
    # OpenTelemetry exporters add this path to the address they are given.
    path("v1/traces", otlp.traces, name="otlp-traces"),
    path("api/v1/", include("apps.api.urls")),
    path("api/stubs/", include(stub_urls)),
    path("", include("apps.web.urls")),
]

handler400 = "apps.web.views.errors.bad_request"
handler403 = "apps.web.views.errors.forbidden"
handler404 = "apps.web.views.errors.not_found"
handler500 = "apps.web.views.errors.server_error"
