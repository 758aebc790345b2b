"""Takes an upload for a project as a web server would: run as a module, with its slug."""

from __future__ import annotations

import sys

import django
from django.utils import timezone

CHAT = b'[{"role": "user", "content": "hi"}]'


def main(slug: str) -> None:
    django.setup()
    # Models are there only now.
    from apps.accounts.models import Project  # noqa: PLC0415
    from apps.pipeline.flow import submit_upload  # noqa: PLC0415
    from apps.traces.storage import receive  # noqa: PLC0415

    received = receive([CHAT], limit=99, name="a.json")
    project = Project.objects.get(slug=slug)
    submit_upload(project=project, received=received, user=None, now=timezone.now())


if __name__ == "__main__":
    main(*sys.argv[1:])
