"""Checks that a project defines, made from the rows that store them."""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.check import Check
from apps.engine.contracts.contract_check import ContractCheck
from apps.engine.contracts.fact_spec import decoded_fact
from apps.engine.contracts.planted_fact import PlantedFact
from apps.engine.contracts.spec import BadDefinition, decoded_contract

CONTRACT: Final = "contract"
PLANTED_FACT: Final = "planted-fact"
LONGEST_SLUG: Final = 27
LONGEST_LABEL: Final = 80

_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def definition_check(
    *, kind: str, slug: str, label: str, version: int, spec: dict[str, Any]
) -> Check:
    """The check of a definition; the slug of the check is `<kind>-<slug>`.

    Raises `BadDefinition`, with the field and a sentence for whoever wrote it.
    """
    if not _SLUG.fullmatch(slug) or len(slug) > LONGEST_SLUG:
        raise BadDefinition(
            f"A short name has small letters, digits and hyphens, {LONGEST_SLUG} "
            "characters at most.",
            field="slug",
        )
    if not label.strip() or len(label) > LONGEST_LABEL:
        raise BadDefinition(
            f"A definition needs a name of at most {LONGEST_LABEL} characters.",
            field="label",
        )
    named = f"{kind}-{slug}"
    if kind == CONTRACT:
        return ContractCheck(named, label, version, decoded_contract(spec))
    if kind == PLANTED_FACT:
        return PlantedFact(named, label, version, decoded_fact(spec))
    raise BadDefinition("A project defines contracts and planted facts.", field="kind")
