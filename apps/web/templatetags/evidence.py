"""Filters that put evidence into words: never a bare number where words are due."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.engine.formats import labels
from apps.engine.masking import (
    OUTCOME_WORDS,
    WORDS,
    Colour,
    ColourWords,
    OutcomeColour,
)
from apps.reports.rates import rate_of
from apps.reports.words import short_rate
from apps.traces.models import Trace
from apps.traces.storage import size_in_words
from apps.web.pages.bodies import as_text as text_of
from apps.web.words import (
    chance_in_words,
    expected_in_words,
    floor_in_words,
    number_in_words,
    percent_in_words,
)

register = template.Library()
_JSON_IN_WORDS: Final = re.compile(r"(\{[^{}]*\})")
_LOOSE_PERCENT: Final = re.compile(r"(?<=\d) %")

_FORMAT_LABELS = labels()
# With the full stop, exclamation and question mark of Chinese and Japanese.
_ENDS = ".!?…:;\u3002\uff01\uff1f"


@register.filter
def number(value: float | None) -> str:
    """`12 345`, `0.347`, or an em dash for what was not recorded."""
    return number_in_words(value)


@register.filter
def percent(value: float | None) -> str:
    """A share of 1 as `38 %`; small ones keep two significant digits."""
    return percent_in_words(value)


@register.filter
def floor(value: float) -> str:
    """The smallest probability attainable, in percent."""
    return floor_in_words(value)


@register.filter
def about(value: float | None) -> str:
    """An expected count: `about 0.35`, `less than 0.01`, `none`."""
    return "—" if value is None else expected_in_words(value)


@register.filter
def as_text(value: Any) -> str:
    """A JSON value as people read it."""
    return text_of(value)


@register.filter
def format_label(slug: str) -> str:
    """A format's name for people."""
    return _FORMAT_LABELS.get(slug, slug)


@register.filter
def chance(value: dict[str, Any] | None) -> str:
    """A null probability in words: an exact fraction where there is one."""
    return chance_in_words(value)


@register.filter
def size(value: float | None) -> str:
    """Bytes in words."""
    return "not known" if value is None else size_in_words(value)


@register.filter
def when(value: datetime | None) -> SafeString | str:
    """A `<time>` in UTC that the page's script turns into the viewer's zone."""
    if value is None:
        return "—"
    moment = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" data-time>{} UTC</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M"),
    )


@register.filter
def when_ns(value: int | None) -> SafeString | str:
    """Nanoseconds since the epoch as a `<time>`; words for what is no date."""
    if value is None:
        return "no time recorded"
    try:
        return when(datetime.fromtimestamp(value / 1e9, tz=UTC))
    except (OverflowError, ValueError, OSError):
        return "a time outside of any calendar"


@register.filter
def duration(value: int | None) -> str:
    """Nanoseconds as `under 1 ms`, `412 ms`, `3.2 s` or `4 min 10 s`."""
    if value is None:
        return ""
    seconds = value / 1e9
    if seconds < 0:
        return "ends before it starts"
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{math.floor(seconds / 60)} min {seconds % 60:.0f} s"


@register.filter
def step_number(value: int | None) -> str:
    """A step's place for people: steps count from 1."""
    return "" if value is None else str(value + 1)


@register.filter
def trace_label(trace: Trace) -> str:
    """A trace's name with its trial, unless the name itself ends with it."""
    trial = "" if trace.trial is None else f"trial {trace.trial}"
    if not trial or trace.name.endswith(trial):
        return trace.name
    return f"{trace.name}, {trial}"


@register.filter
def sentence(text: str) -> str:
    """A text that others follow: with a full stop, if no mark ends it already."""
    bare = text.rstrip()
    return bare if not bare or bare[-1] in _ENDS else f"{bare}."


@register.filter
def tied(text: str) -> str:
    """A sentence in which no percent sign is parted from its number by a line's end."""
    return _LOOSE_PERCENT.sub("\u202f%", str(text))


@register.filter
def coded(text: str) -> SafeString:
    """A text as HTML, escaped, with the JSON objects in it set as code."""
    parts = _JSON_IN_WORDS.split(text)
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<code>{}</code>", part) if at % 2 else part,)
            for at, part in enumerate(parts)
        ),
    )


@register.filter
def words(value: str) -> str:
    """A code like `not_applicable` as words."""
    return str(value).replace("_", " ")


@register.simple_tag
def plural(count: int | None, one: str, many: str) -> str:
    """`1 trace`, `12 345 traces`."""
    return f"{number_in_words(count)} {one if count == 1 else many}"


@register.filter
def verdict_words(colour: str) -> ColourWords:
    """The word, symbol and meaning of the verdict of an agent; unknown for no verdict."""
    known = colour in set(Colour)
    return WORDS[Colour(colour) if known else Colour.UNKNOWN]


@register.filter
def outcome_words(colour: str) -> ColourWords:
    """The word, symbol and meaning of an outcome; unknown for none."""
    known = colour in set(OutcomeColour)
    return OUTCOME_WORDS[OutcomeColour(colour) if known else OutcomeColour.UNKNOWN]


@register.simple_tag
def share(k: int, n: int, nothing: str = "none") -> str:
    """`3 of 5 (60 %; 23 % to 88 %)`: the share with its 95 % Wilson interval."""
    return short_rate(rate_of(k, n), nothing)
