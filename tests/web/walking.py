"""How a test asks at every URL of the site, and takes back what that changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse


def all_patterns(resolver: URLResolver) -> list[URLPattern]:
    found = []
    for pattern in resolver.url_patterns:
        found += (
            all_patterns(pattern) if isinstance(pattern, URLResolver) else [pattern]
        )
    return found


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(p.name for p in all_patterns(get_resolver())))


def url_of(name: str, rooms: dict[str, object]) -> str:
    assert name in names()
    full = get_resolver().reverse_dict.getlist(name)[0][0][0][1]
    return reverse(name, kwargs={key: rooms[key] for key in full})


def ask(client: Client, name: str, rooms: dict[str, object], method: str = "get"):
    answer = getattr(client, method)(url_of(name, rooms))
    for close in answer._resource_closers:
        close()
    return answer


def signed_in_as(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@contextmanager
def put_back(name: str) -> Iterator[None]:
    """What asking at a URL changes is taken back; an error says at which it was."""
    try:
        with transaction.atomic():
            yield
            transaction.set_rollback(True)
    except Exception as error:
        error.add_note(f"This was at {name!r}.")
        raise


def status(client: Client, name: str, rooms: dict[str, object], method: str) -> int:
    return ask(client, name, rooms, method).status_code
