"""Sends files in pieces, as the page of uploads does."""

from __future__ import annotations

from base64 import b64encode

from django.test import Client
from django.urls import reverse

from tests.factories import CHAT, chat_bytes

CONTENT = chat_bytes(CHAT) * 40
TUS = {"Tus-Resumable": "1.0.0", "Accept": "application/json"}
TYPE = "application/offset+octet-stream"


class Sender:
    """Speaks the protocol for one person."""

    def __init__(self, project, user=None) -> None:
        self.client = Client(raise_request_exception=False)
        self.project = project
        if user is not None:
            self.client.force_login(user)

    def begin(self, size: int = len(CONTENT), version="1.0.0", **metadata: str):
        pairs = [f"{k} {b64encode(v.encode()).decode()}" for k, v in metadata.items()]
        return self.client.post(
            reverse("upload-parts", args=[self.project.slug]),
            headers={
                **TUS,
                "Tus-Resumable": version,
                "Upload-Length": str(size),
                "Upload-Metadata": ",".join(pairs),
            },
        )

    def add(self, url: str, content: bytes, at: int, **headers: str):
        return self.client.patch(
            url, content, TYPE, headers={**TUS, "Upload-Offset": str(at), **headers}
        )

    def ask(self, url: str):
        return self.client.head(url, headers=TUS)
