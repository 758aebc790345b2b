"""What the operator of this site allows targets to be: out of the settings, nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from apps.isolation.sandbox.levels import LEVEL_WORDS, Level
from apps.isolation.wall import (
    InnerHosts,
    NotAHost,
    RefusedAddress,
    checked_url,
    inner_hosts,
)
from apps.replays.target_settings import Allowed


def allowed_here() -> Allowed:
    """The callables, commands and addresses that a target of this site may name."""
    return Allowed(
        refused_url=refused_url,
        callables=tuple(settings.REPLAY_CALLABLES),
        commands=tuple(settings.REPLAY_COMMANDS),
    )


def inner_hosts_here() -> InnerHosts:
    """The private hosts and ports that may be called; raises `NotAHost`."""
    return inner_hosts(settings.REPLAY_HOSTS)


def sends_in_clear(settings_of_target: Mapping[str, Any]) -> bool:
    """Whether a target is called in a way that others can read: key, prompts, answers."""
    url = settings_of_target.get("base_url") or settings_of_target.get("url") or ""
    try:
        return bool(url) and checked_url(url, inner=inner_hosts_here()).sends_in_clear
    except (RefusedAddress, NotAHost):
        return False


def refused_url(url: str) -> str:
    """Why a target may not be called at this address, "" where it may."""
    try:
        inner = inner_hosts_here()
    except NotAHost as error:
        return f"The operator's list of inner hosts (EVALSITE_REPLAY_HOSTS) is wrong: {error}"
    try:
        checked_url(url, inner=inner)
    except RefusedAddress as error:
        said = str(error)
        if "list of inner hosts" in said:
            said = f"{said.rstrip('.')} (EVALSITE_REPLAY_HOSTS)."
        return said
    return ""


def least_level() -> Level:
    """The least isolation that local code is run with here."""
    return Level(settings.REPLAY_LEAST_ISOLATION)


def levels_to_ask() -> list[tuple[str, str]]:
    """The levels that a batch may ask for, in words: that of the site and better ones."""
    least = least_level()
    return [
        (level.value, LEVEL_WORDS[level]) for level in Level if level.is_at_least(least)
    ]
