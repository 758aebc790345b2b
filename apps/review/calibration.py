"""What people said about what the keys of checks fire at, and what was missed.

A decision belongs to the fingerprint of what was decided (trace, check, scope and hash
of what was read), so it counts for every key that fires there. Only decisions that
stand count; what was undone does not. Everything is counted by the database, in a
number of statements that does not grow with the traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.accounts.models import Project
from apps.screening.calibration import (
    KEYS,
    ON_KEY,
    GroupKind,
    members_of,
    rows_of,
    values_of,
)
from apps.screening.lineup import CheckKey


class Said(msgspec.Struct):
    """What reviewers said of the review signals of a key, in one group of traces."""

    confirmed: int = 0
    dismissed: int = 0
    needs_experiment: int = 0
    cannot_tell: int = 0
    reasons: dict[str, int] = {}

    @property
    def decided(self) -> int:
        """Decisions that say yes or no: those of which precision is a share."""
        return self.confirmed + self.dismissed

    @property
    def looked_at(self) -> int:
        """All decisions."""
        return self.decided + self.needs_experiment + self.cannot_tell


_FIELDS: Final = {
    "confirm": "confirmed",
    "dismiss": "dismissed",
    "needs_experiment": "needs_experiment",
    "cannot_tell": "cannot_tell",
}

# The last decision on the fingerprint of each review signal of each key.
_DECIDED: Final = f"""
    SELECT DISTINCT ON (s.id) s.id, s.project_id, s.trace_id, s.check_slug,
        s.check_version, s.parameters_hash, s.agent, s.evidence,
        signal.id AS signal_id, signal.verdict, signal.reason
    FROM key
    JOIN review_signal AS signal ON signal.project_id = %(project)s
        AND signal.check_slug = key.check_slug AND signal.state = 'decided'
    JOIN screening_screening AS seen ON seen.id = signal.screening_id
    JOIN screening_screening AS s ON {ON_KEY}
        AND s.trace_id = seen.trace_id AND s.scope = seen.scope
        AND s.input_hash = seen.input_hash
        AND s.answer = 'signal' AND s.level = 'review_signal'
    ORDER BY s.id, signal.decided_at DESC, signal.id DESC"""  # noqa: S608 - constants

_SAID: Final = f"""
WITH key AS ({KEYS}), s AS ({_DECIDED})
SELECT s.check_slug, s.check_version, s.parameters_hash, g.kind, g.name, s.verdict,
    s.reason, COUNT(*) AS number
FROM s
JOIN traces_trace AS t ON t.id = s.trace_id
JOIN traces_upload AS u ON u.id = t.upload_id
{{members}}
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY 1, 2, 3, 4, 5, 6, 7
"""  # noqa: S608 - made of constants

Groups = dict[tuple[GroupKind, str], Said]


def said_of(
    *,
    project: Project,
    keys: Sequence[CheckKey],
    kinds: Sequence[GroupKind] = (GroupKind.ALL,),
) -> dict[CheckKey, Groups]:
    """What reviewers said of the review signals of `keys`, by group: one statement.

    Where several signals with one fingerprint were decided, the last decision counts.
    """
    found: dict[CheckKey, Groups] = {key: {} for key in keys}
    statement = _SAID.format(members=members_of(kinds))
    for row in rows_of(statement, values_of(project, keys)):
        key = (row["check_slug"], row["check_version"], row["parameters_hash"])
        group = GroupKind(row["kind"]), row["name"]
        said = found[key].setdefault(group, Said())
        field = _FIELDS[row["verdict"]]
        setattr(said, field, getattr(said, field) + row["number"])
        if row["reason"]:
            said.reasons[row["reason"]] = row["number"]
    return found


class BlindCount(msgspec.Struct, frozen=True):
    """Decided blind looks at traces about which a key answered.

    `fired` says whether the key gave a review signal there, `flagged` whether any check
    had a queued signal when the look was drawn. `traces` is how many traces of this
    stratum the key answered about at all.
    """

    fired: bool
    flagged: bool
    traces: int
    failures: int = 0
    no_failures: int = 0
    cannot_tell: int = 0

    @property
    def looks(self) -> int:
        """Looks that say yes or no."""
        return self.failures + self.no_failures


# A key that only gives telemetry fires where it gives a signal of any level.
_ANSWERED: Final = f"""
    SELECT s.check_slug, s.check_version, s.parameters_hash, s.trace_id,
        bool_or(s.answer = 'signal' AND (s.level = 'review_signal'
            OR NOT key.is_review)) AS fired
    FROM (SELECT key.*, EXISTS (
            SELECT 1 FROM screening_screening AS s
            WHERE s.project_id = %(project)s AND {ON_KEY}
                AND s.answer = 'signal' AND s.level = 'review_signal'
        ) AS is_review FROM ({KEYS}) AS key) AS key
    JOIN screening_screening AS s ON {ON_KEY}
    WHERE s.project_id = %(project)s AND s.answer <> 'not_applicable'
    GROUP BY 1, 2, 3, 4"""  # noqa: S608 - made of constants

_LOOKED_AT: Final = _ANSWERED.replace(
    "GROUP BY",
    """AND s.trace_id IN (
        SELECT trace_id FROM review_blindlook
        WHERE project_id = %(project)s AND state = 'decided')
    GROUP BY""",
)

_BLIND: Final = """
WITH answered AS ({answered})
SELECT a.check_slug, a.check_version, a.parameters_hash, a.fired,
    COALESCE(look.was_flagged, t.signal_count > 0) AS flagged,
    COUNT(*) AS traces,
    COUNT(*) FILTER (WHERE look.verdict = 'failure') AS failures,
    COUNT(*) FILTER (WHERE look.verdict = 'no_failure') AS no_failures,
    COUNT(*) FILTER (WHERE look.verdict = 'cannot_tell') AS cannot_tell
FROM answered AS a
JOIN traces_trace AS t ON t.id = a.trace_id
LEFT JOIN review_blindlook AS look ON look.trace_id = t.id
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1, 2, 3, 4, 5
"""


def blind_counts(
    *, project: Project, keys: Sequence[CheckKey], only_looks: bool = False
) -> dict[CheckKey, list[BlindCount]]:
    """What blind looks found where each key was quiet and where it fired: one statement.

    A key fires at a trace when it gives a review signal there; one that only gives
    telemetry when it gives any signal. Traces to which it does not apply are left out.
    With `only_looks` the traces that nobody has decided about are not counted, which is
    much faster; nothing can be weighted back then.
    """
    found: dict[CheckKey, list[BlindCount]] = {key: [] for key in keys}
    statement = _BLIND.format(answered=_LOOKED_AT if only_looks else _ANSWERED)
    for row in rows_of(statement, values_of(project, keys)):
        key = (
            row.pop("check_slug"),
            row.pop("check_version"),
            row.pop("parameters_hash"),
        )
        found[key].append(BlindCount(**row))
    return found


class Truth(StrEnum):
    """What tells whether a trace failed, each with its own weakness."""

    OUTCOME = "outcome"
    BLIND = "blind"
    DECISION = "decision"


class TruthCount(msgspec.Struct, frozen=True):
    """A key beside the rule "flag the longest traces", against one kind of truth.

    `flagged` traces are those at which the key fired, `hits` of them failed; the rule
    flags as many traces, those with the most steps, and `longest_hits` of them failed.
    """

    truth: Truth
    traces: int
    failures: int
    flagged: int
    hits: int
    longest_hits: int


_TRUTHS: Final = f"""
WITH answered AS ({_ANSWERED}
), told AS (
    SELECT 'outcome' AS truth, a.trace_id, a.fired, t.outcome = 'fail' AS failed
    FROM answered AS a JOIN traces_trace AS t ON t.id = a.trace_id
    WHERE t.outcome IN ('pass', 'fail')
    UNION ALL
    SELECT 'blind', a.trace_id, a.fired, look.verdict = 'failure'
    FROM answered AS a JOIN review_blindlook AS look ON look.trace_id = a.trace_id
    WHERE look.verdict IN ('failure', 'no_failure')
    UNION ALL
    SELECT 'decision', a.trace_id, a.fired, bool_or(signal.verdict = 'confirm')
    FROM answered AS a JOIN review_signal AS signal ON signal.trace_id = a.trace_id
    WHERE signal.verdict IN ('confirm', 'dismiss')
    GROUP BY a.trace_id, a.fired
), placed AS (
    SELECT told.*,
        ROW_NUMBER() OVER (PARTITION BY truth ORDER BY t.step_count DESC, t.id)
            AS place,
        COUNT(*) FILTER (WHERE fired) OVER (PARTITION BY truth) AS flagged
    FROM told JOIN traces_trace AS t ON t.id = told.trace_id
)
SELECT truth, COUNT(*) AS traces, COUNT(*) FILTER (WHERE failed) AS failures,
    MAX(flagged) AS flagged, COUNT(*) FILTER (WHERE fired AND failed) AS hits,
    COUNT(*) FILTER (WHERE place <= flagged AND failed) AS longest_hits
FROM placed GROUP BY truth ORDER BY truth
"""  # noqa: S608 - made of constants


def truths_of(*, project: Project, key: CheckKey) -> dict[Truth, TruthCount]:
    """The key beside constant rules on traces of which something tells: one statement.

    The outcome as recorded; blind looks that say yes or no; decisions on signals of
    any check, where one confirmed signal makes a trace a failed one. Traces to which
    the key does not apply are left out.
    """
    rows = rows_of(_TRUTHS, values_of(project, [key]))
    counts = [TruthCount(**{**row, "truth": Truth(row["truth"])}) for row in rows]
    return {count.truth: count for count in counts}


class NamedSteps(msgspec.Struct, frozen=True):
    """Steps that people named as the place of a failure, beside what a key points at.

    Of `named` steps in traces where the key gives a review signal, `in_evidence` are
    among the steps that it rests on; `last` are the last step of their trace, and
    `by_chance` is how many as many steps drawn at random would be expected to meet.
    """

    named: int
    in_evidence: int
    last: int
    by_chance: float


_NAMED: Final = f"""
WITH key AS ({KEYS}), said AS (
    SELECT DISTINCT ON (entry.signal_id) signal.trace_id, entry.where_step
    FROM review_historyentry AS entry
    JOIN review_signal AS signal ON signal.id = entry.signal_id
    WHERE signal.project_id = %(project)s AND signal.verdict = 'confirm'
        AND entry.act = 'decided'
    ORDER BY entry.signal_id, entry.base_version DESC
), seen AS (
    SELECT DISTINCT ON (entry.look_id) look.trace_id, entry.where_step
    FROM review_blindentry AS entry JOIN review_blindlook AS look
        ON look.id = entry.look_id
    WHERE look.project_id = %(project)s AND look.verdict = 'failure'
        AND entry.act = 'decided'
    ORDER BY entry.look_id, entry.base_version DESC
), named AS (
    SELECT trace_id, where_step FROM said WHERE where_step IS NOT NULL
    UNION SELECT trace_id, where_step FROM seen WHERE where_step IS NOT NULL
), pointed AS (
    SELECT DISTINCT s.trace_id, (step #>> '{{}}')::bigint AS step
    FROM key JOIN screening_screening AS s ON {ON_KEY}
    CROSS JOIN LATERAL jsonb_array_elements(s.evidence -> 'steps') AS step
    WHERE s.answer = 'signal' AND s.level = 'review_signal'
        AND s.trace_id IN (SELECT trace_id FROM named)
), counted AS (
    SELECT trace_id, COUNT(*) AS steps FROM pointed GROUP BY trace_id
)
SELECT COUNT(*) AS named,
    COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM pointed
        WHERE pointed.trace_id = named.trace_id AND pointed.step = named.where_step))
        AS in_evidence,
    COUNT(*) FILTER (WHERE named.where_step = t.step_count - 1) AS last,
    COALESCE(SUM(counted.steps::float8 / t.step_count), 0) AS by_chance
FROM named JOIN counted ON counted.trace_id = named.trace_id
JOIN traces_trace AS t ON t.id = named.trace_id
"""  # noqa: S608 - made of constants


def named_steps(*, project: Project, key: CheckKey) -> NamedSteps:
    """How a key's evidence meets the steps that people named: one statement."""
    [row] = rows_of(_NAMED, values_of(project, [key]))
    return NamedSteps(**row)


def open_numbers(*, project: Project) -> dict[str, int]:
    """How many signals of each check wait for a decision: one statement."""
    rows: list[dict[str, Any]] = rows_of(
        """SELECT check_slug, COUNT(*) AS number FROM review_signal
        WHERE project_id = %(project)s AND state IN ('open', 'claimed')
        GROUP BY check_slug""",
        {"project": project.pk},
    )
    return {row["check_slug"]: row["number"] for row in rows}
