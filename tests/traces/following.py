"""Going through a list page by page, as a person does."""

from __future__ import annotations

import re


def follow(client, url: str, pattern: str) -> list[str]:
    """Every match of `pattern` on every page, following the link to the next."""
    found: list[str] = []
    address = url
    for _ in range(10):
        text = client.get(address).content.decode()
        found += dict.fromkeys(re.findall(pattern, text))
        following = re.search(r'href="([^"]*after=\d+[^"]*|\?before=\d+)"', text)
        if following is None:
            return found
        query = following[1].replace("&amp;", "&")
        address = query if query.startswith("/") else url.split("?")[0] + query
    raise AssertionError("The pages do not end.")
