"""Which tools change something, by the verbs in their names.

A name is a hint and no proof: what is not recognised is unknown, neither reading nor
writing, and a project can name the tools that write.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

_READS: Final = frozenset(
    {
        "get", "list", "search", "find", "fetch", "read", "show", "view", "describe",
        "lookup", "look", "query", "check", "calculate", "compute", "think", "retrieve",
        "count", "browse", "inspect", "validate", "verify", "preview", "estimate",
        "compare", "analyze", "analyse", "summarize", "explain", "ask", "suggest",
        "recommend", "load", "grep", "glob", "ls", "cat", "head", "tail", "scan",
        "monitor", "wait", "sleep", "watch", "simulate", "is", "has", "can", "parse",
        "convert", "translate", "extract", "download", "diff", "peek",
    }
)  # fmt: skip
_WRITES: Final = frozenset(
    {
        "create", "update", "delete", "send", "cancel", "pay", "write", "insert", "add",
        "remove", "modify", "edit", "exchange", "refund", "reserve", "purchase", "buy",
        "submit", "publish", "upload", "approve", "reject", "grant", "revoke", "enable",
        "disable", "assign", "unassign", "transfer", "withdraw", "deposit", "save",
        "move", "rename", "replace", "append", "push", "merge", "commit", "deploy",
        "restart", "reboot", "install", "uninstall", "register", "unregister",
        "subscribe", "unsubscribe", "archive", "reopen", "invite", "unshare", "reply",
        "notify", "dispatch", "upsert", "activate", "deactivate", "suspend", "unlock",
        "overwrite", "destroy", "truncate", "provision", "post", "put", "patch", "set",
        "rebook", "redeem", "enroll", "unenroll", "void", "ban", "unban", "sell",
        "wire", "settle", "tweet", "increment", "decrement", "mint",
    }
)  # fmt: skip
# Nouns as often as verbs: they say something only as the first word, with an object.
_WRITES_FIRST: Final = frozenset(
    {
        "book", "order", "charge", "email", "message", "schedule", "place", "issue",
        "return", "share", "close", "confirm", "apply", "record", "store", "copy",
        "drop", "lock", "reset", "mark", "file", "text", "call", "ship", "change",
    }
)  # fmt: skip
# Verbs of anything: they say something with one of these objects only.
_ACTS: Final = frozenset(
    {
        "make", "process", "execute", "initiate", "capture", "authorize", "authorise",
        "open", "raise", "launch", "trigger", "request", "perform", "do", "run", "start",
        "complete", "credit", "debit", "begin",
    }
)  # fmt: skip
_OBJECTS: Final = frozenset(
    {
        "payment", "payments", "payout", "payouts", "trade", "trades", "transaction",
        "transactions", "purchase", "purchases", "reservation", "reservations",
        "booking", "bookings", "appointment", "donation", "withdrawal", "deposit",
        "ticket", "incident", "claim", "campaign", "checkout", "account", "wallet",
        "balance", "order", "bet", "bid", "swap", "exchange", "transfer", "refund",
    }
)  # fmt: skip
_NOUNS_OF_READING: Final = frozenset(
    {
        "details", "detail", "status", "info", "information", "list", "history",
        "search", "lookup", "summary", "count", "price", "prices", "policy", "reader",
    }
)  # fmt: skip
_OWN_NOTES: Final = frozenset(
    {"todo", "todos", "plan", "scratchpad", "thought", "thoughts", "thinking"}
)
_IN_PLACE: Final = frozenset(
    {
        "update", "edit", "modify", "replace", "assign", "move", "rename", "patch",
        "reset", "change", "copy", "store", "delete", "remove", "restart", "install",
        "apply",
    }
)  # fmt: skip
_PACED: Final = frozenset(
    {
        "wait", "sleep", "pause", "poll", "scroll", "page", "next", "previous", "back",
        "forward", "press", "click", "tick", "undo", "redo", "tab", "swipe", "key",
        "screenshot", "snapshot", "observe", "step", "roll", "random", "flip", "draw",
    }
)  # fmt: skip
_SETS: Final = frozenset(
    {
        "set", "save", "enable", "disable", "activate", "deactivate", "overwrite", "put",
        "upsert", "lock", "unlock", "mark",
    }
)  # fmt: skip
_ENDINGS: Final = frozenset(
    {
        "finish", "finished", "stop", "done", "exit", "quit", "terminate", "completed",
        "completion", "final", "handoff", "escalate", "end", "answer", "respond", "reply",
    }
)  # fmt: skip
_ACTIONS: Final = ("command", "action", "operation", "op", "method", "subcommand")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
_PARTS: Final = re.compile(r"__|[./]")


class Effect(StrEnum):
    """What a tool does to the world, as far as its name tells."""

    READS = "reads"
    WRITES = "writes"
    UNKNOWN = "unknown"


@lru_cache(maxsize=4096)
def effect_of(name: str, extra: frozenset[str] = frozenset()) -> Effect:
    """What the tool called `name` does; `extra` are names of tools that write.

    The first verb counts: a name that begins with a reading verb reads. The last part
    of dotted names and of names of MCP servers is what is read.
    """
    own = own_name(name)
    if name in extra or own in extra:
        return Effect.WRITES
    words = words_of(name)
    # Handing over to somebody moves the conversation, not money or goods.
    if ends_a_task(name) or not _OWN_NOTES.isdisjoint(words):
        return Effect.UNKNOWN
    for place, word in enumerate(words):
        if word in _READS:
            return Effect.READS
        if word in _WRITES or (place == 0 and _is_act(words)):
            return Effect.WRITES
    return Effect.UNKNOWN


def is_write(name: str, extra: frozenset[str] = frozenset()) -> bool:
    """Whether the name of a tool says that it changes something."""
    return effect_of(name, extra) is Effect.WRITES


def is_reading_action(arguments: Any) -> bool:
    """Whether the arguments name an action that reads, in a tool that does several."""
    if not isinstance(arguments, dict):
        return False
    for key in _ACTIONS:
        action = arguments.get(key)
        if isinstance(action, str):
            words = words_of(action[:80])
            return bool(words) and words[0] in _READS
    return False


def ends_a_task(name: str) -> bool:
    """Whether a call of the tool is how a task ends: finish, submit, transfer to."""
    words = words_of(name)
    if words in {("submit",), ("complete",)} or words[:2] == ("transfer", "to"):
        return True
    if "task" in words and not {"complete", "submit"}.isdisjoint(words):
        return True
    return not _ENDINGS.isdisjoint(words)


def sets_a_state(name: str) -> bool:
    """Whether doing it again right away changes nothing: set, save, write a file."""
    words = words_of(name)
    if words[:1] == ("write",):
        return len(words) == 1 or "file" in words
    return bool(words) and words[0] in _SETS


def writes_in_place(name: str) -> bool:
    """Whether it makes something be so, which another write can undo: update, move."""
    return not _IN_PLACE.isdisjoint(words_of(name))


def moves_on_each_call(name: str) -> bool:
    """Whether the same call again is how the tool is used: wait, scroll, next page."""
    return not _PACED.isdisjoint(words_of(name))


def own_name(name: str) -> str:
    """The name without its server or namespace: `mcp__mail__send` is `send`."""
    parts = [part for part in _PARTS.split(name) if part]
    return parts[-1] if parts else name


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """The words of the own name of a tool, in lower case."""
    return tuple([word.casefold() for word in _WORD.findall(own_name(name))])


def _is_act(words: tuple[str, ...]) -> bool:
    objects = words[1:]
    if not objects or not _NOUNS_OF_READING.isdisjoint(objects):
        return False
    if words[0] in _ACTS:
        return not _OBJECTS.isdisjoint(objects)
    return words[0] in _WRITES_FIRST
