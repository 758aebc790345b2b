"""Making trace sets through their page, and asking for comparisons."""

from __future__ import annotations

from django.urls import reverse

from apps.traces.models import Upload


def text_of(answer) -> str:
    return answer.content.decode()


def keys() -> list[str]:
    return [
        f"upload:{pk}"
        for pk in Upload.objects.order_by("pk").values_list("pk", flat=True)
    ]


def side_by_side(web, project, first: str, second: str, page: str = "compare"):
    fields = {"first": first, "second": second}
    return web.get(reverse(page, args=[project.slug]), fields)


def save(web, project, name="Release 4", query="", **fields):
    url = reverse("set-new", args=[project.slug]) + query
    return web.post(url, {"name": name, "note": "", "act": "save", **fields})
