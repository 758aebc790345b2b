"""A document in which every text from outside tries to act."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.reports.document import ReasonPart, SeriesPart
from tests.reports.assessed import MASKED, assessed
from tests.reports.documents import (
    DECAY,
    decay_signal,
    document,
    history,
    trace,
    upload,
)

HOSTILE = (
    "# Title ![i](http://127.0.0.1:9/x) [l](javascript:alert(1)) <script>alert(1)"
    '</script> | a | b |\n```\n---\n# fake heading\n#sys.version #read("/etc/passwd") '
    "$x$ @ref https://example.invalid www.example.invalid a@example.invalid "
    "日本語 עברית العربية 🚀 \u202eevil\u200b ``code`` &amp; \\ {{ x }} ${y} `"
)
LONG = "supercalifragilistic" * 40


def hostile(words: str = HOSTILE, long: str = LONG) -> dict[str, Any]:
    """A document whose every text from outside is hostile (or is `words`)."""
    text = words + long
    series = SeriesPart(
        unit=words[:60],
        steps=(1, 2, 3, 4),
        values=(4.0, None, 2.0, None),
        threshold=2.4,
    )
    lanes = SeriesPart(
        unit="tool calls", steps=(1, 2), values=(1.0, 1.0), labels=(text, "<b>&\"'")
    )
    base = decay_signal().evidence
    evidence = msgspec.structs.replace(
        base,
        scope=words[:80],
        reason=text,
        agent=text,
        model=text,
        provider=text,
        began=text,
        ended=text,
        order=text,
        series=series,
        not_modelled=(text,),
        facts={words[:80]: text, "x": [text]},
        usage_known=2,
        usage_missing=2,
    )
    hostile_trace = trace(
        name=text,
        native_id=text[:200],
        upload=text[:255],
        task=text[:200],
        outcome_words=f"fail (“{text[:200]}”)",
        outcome_source=text[:200],
    )
    first = decay_signal(
        headline=text,
        evidence=evidence,
        trace=hostile_trace,
        state="decided",
        verdict="dismiss",
        reason="other",
        history=(
            history(
                by=text[:150],
                note=words + "\n````\n# x\n````\n- [a](b)\n" + long,
                verdict="dismiss",
                reason="other",
                where_agent=text[:200],
                where_step=4,
            ),
        ),
    )
    second = decay_signal(
        id=32,
        headline=text,
        evidence=msgspec.structs.replace(evidence, series=lanes),
        trace=hostile_trace,
    )
    reasons = (ReasonPart("not_applicable", "usage_missing", 4, text),)
    return document(
        title=words[:170],
        project=text[:120],
        generated_by=text[:150],
        filter_words=f"open signals, agent {text[:200]}",
        scope_words=f"upload 4 ({text[:200]})",
        checks=(msgspec.structs.replace(DECAY, reasons=reasons),),
        signals=(first, second),
        signals_selected=2,
        uploads=(
            upload(name=text[:255], format=text[:40], notes=(text[:500], text[:500])),
            upload(id=5, name="x.json", state="failed", failure=text),
        ),
        not_checked=(f"Upload 5 was not read: {text}",),
        headline=msgspec.structs.replace(MASKED, sentence=text[:600]),
        assessment=assessed(text[:240], note=words),
    )
