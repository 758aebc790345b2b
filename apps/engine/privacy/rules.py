"""All rules of secret redaction, the ones with a form of their own first.

Where two rules match at one place, the earlier one counts.
"""

from __future__ import annotations

from typing import Final

from apps.engine.privacy.named_secrets import NAMED_SECRETS
from apps.engine.privacy.people import PEOPLE
from apps.engine.privacy.rule import Rule
from apps.engine.privacy.vendor_keys import VENDOR_KEYS

RULES: Final[tuple[Rule, ...]] = (*VENDOR_KEYS, *NAMED_SECRETS, *PEOPLE)


def by_slug(slug: str) -> Rule:
    """The rule with this slug; raises `KeyError` when there is none."""
    for rule in RULES:
        if rule.slug == slug:
            return rule
    raise KeyError(slug)
