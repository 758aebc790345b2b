"""The form of a memory test: facts, how deep they are buried, and what stands between."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from apps.engine.contracts.fact_spec import LONGEST_VALUE
from apps.engine.contracts.mentions import Normaliser
from apps.engine.contracts.spec import BadDefinition
from apps.engine.extraction import AUTOMATIC, encoded
from apps.engine.memory_tests import (
    LANGUAGES,
    Length,
    MemoryTest,
    Mode,
    decoded_memory_test,
)
from apps.engine.memory_tests.decoding import LONGEST_TEXT
from apps.replays.models import ReplayCase
from apps.replays.planning import MOST_REPEATS
from apps.web.agent_fields import area, choice, several, text, written
from apps.web.forms import MarkedForm, WholeField
from apps.web.replay_batch_forms import BatchForm

MOST_FACTS: Final = 8
SHOWN_FACTS: Final = 3
_MODES: Final = [
    (Mode.RAW, "the conversation goes on as it is"),
    (Mode.SUMMARISED, "it is summarised now and then and goes on from the summary"),
    (Mode.STORE, "what the agent keeps is read before it is asked"),
]
_LENGTHS: Final = [
    (Length.GROWS, "deeper facts make longer conversations"),
    (Length.EQUAL, "all conversations are equally long"),
]
_FILLERS: Final = [
    ("own", "our texts in the languages below"),
    ("typed", "the texts below"),
    ("traces", "what users said in this project's traces"),
]
_NORMALISERS: Final = [
    (Normaliser.SPACE, "but for blanks and large letters"),
    (Normaliser.CASE, "but for large letters"),
    (Normaliser.EXACT, "letter by letter"),
    (Normaliser.NUMBER, "as a number"),
    (Normaliser.ID, "as an id, but for hyphens and blanks"),
]
_LANGUAGE_NAMES: Final = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "ja": "Japanese",
    "zh": "Chinese",
    "ar": "Arabic",
    "ru": "Russian",
    "hi": "Hindi",
    "he": "Hebrew",
    "tr": "Turkish",
    "pl": "Polish",
}
_SLUG: Final = re.compile(r"[^a-z0-9]+")


class FactForm(MarkedForm):
    """One fact that is planted."""

    value = text("The value", most=LONGEST_VALUE, example="K-4417")
    telling = area(
        "How it is told",
        most=LONGEST_TEXT,
        hint="With {value} in it, once.",
        example="By the way, my order number is {value}.",
    )
    probe = area(
        "How it is asked for",
        most=LONGEST_TEXT,
        hint="It must not name the value.",
        example="What was my order number?",
    )
    normaliser = choice("Compared", _NORMALISERS)
    accepted = area("Other writings that count", most=4_000, hint="One a line.")
    decoys = area(
        "Decoys",
        most=20_000,
        hint="One a line: another value, a bar, and what is said with {value} in it.",
        example="K-9032 | My sister's order number is {value}.",
    )
    expected = text(
        "Or by a decision: what it must decide",
        most=LONGEST_VALUE,
        hint="Then not the words of the answer are judged but the agent decision in it, "
        "found by the automatic rules.",
    )

    @property
    def number(self) -> int:
        """Which fact it is, from 1."""
        return int(str(self.prefix).rpartition("-")[2]) + 1

    @property
    def told(self) -> list[Any]:
        """The fields that every fact has."""
        return [self[name] for name in ("value", "telling", "probe")]

    @property
    def more(self) -> list[Any]:
        """The fields that a fact may have."""
        return [self[name] for name in ("normaliser", "accepted", "decoys", "expected")]

    def fact(self) -> dict[str, Any] | None:
        """The fact as the engine reads it; None for an empty form."""
        data = self.cleaned_data
        if not any(data[name].strip() for name in ("value", "telling", "probe")):
            return None
        slug = _SLUG.sub("-", data["value"].casefold()).strip("-")[:40] or "fact"
        found: dict[str, Any] = {
            "slug": f"{slug}-{self.number}",
            "value": data["value"],
            "telling": data["telling"],
            "probe": data["probe"],
            "normaliser": data["normaliser"] or Normaliser.SPACE.value,
            "accepted": written(data["accepted"]),
            "decoys": [_decoy(line) for line in written(data["decoys"])],
        }
        if data["expected"]:
            found |= {"decision": encoded(AUTOMATIC), "expected": data["expected"]}
        return found


def _decoy(line: str) -> dict[str, str]:
    value, _, telling = line.partition("|")
    return {"value": value.strip(), "telling": telling.strip()}


class MemoryForm(BatchForm):
    """A memory test of one agent."""

    depths = text(
        "Depths",
        most=300,
        required=True,
        hint="How many turns of the user lie between telling and asking, with commas.",
        example="0, 2, 4, 8, 16",
    )
    repeats = WholeField(
        label="Conversations at each depth",
        initial=5,
        min_value=1,
        max_value=MOST_REPEATS,
    )
    mode = choice("On what it is tried", _MODES)
    summary_every = WholeField(
        label="Turns to a summary", required=False, min_value=0, max_value=1_000
    )
    length = choice("Length", _LENGTHS)
    filler = choice("What is said in between", _FILLERS)
    languages = several(
        "Languages of our texts",
        [(code, _LANGUAGE_NAMES.get(code, code)) for code in LANGUAGES],
        initial=["en"],
    )
    texts = area("Texts of your own", most=500_000, hint="One a line.")
    certain = WholeField(
        label="Recall is certain from",
        initial=80,
        min_value=1,
        max_value=99,
        help_text="Percent that the lower end of the 95 % interval must reach.",
    )
    seed = WholeField(
        label="Seed", initial=1, required=False, min_value=0, max_value=2**31 - 1
    )

    def __init__(self, *args: Any, cases: list[ReplayCase], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cases = {str(one.pk): one for one in cases}
        named = [(key, one.name) for key, one in self.cases.items()]
        self.fields["case"] = choice(
            "Begins with", [("", "nothing: an empty conversation"), *named]
        )
        self.fields[
            "case"
        ].help_text = (
            "The system prompt and tools of a case stand before each conversation."
        )
        self.fields["seconds"].initial = 600

    @property
    def buried(self) -> list[Any]:
        """How deep, how often and on what."""
        names = ("depths", "repeats", "mode", "summary_every", "length", "certain")
        return [self[name] for name in names]

    @property
    def between(self) -> list[Any]:
        """What is said in between."""
        return [self[name] for name in ("filler", "languages", "texts")]

    def chosen_case(self) -> list[ReplayCase]:
        """The case that stands before each conversation, if any."""
        found = self.cases.get(self.cleaned_data.get("case", ""))
        return [] if found is None else [found]

    def test(self, facts: list[FactForm], said: list[str]) -> MemoryTest | None:
        """The test; None where something is wrong, which is said at its field.

        `said` are texts of users in the project's traces.
        """
        data = self.cleaned_data
        planted = [(place, one.fact()) for place, one in enumerate(facts)]
        used = [(place, fact) for place, fact in planted if fact is not None]
        texts = {"own": [], "typed": written(data["texts"]), "traces": said}
        chosen = data["filler"] or "own"
        if chosen != "own" and not texts[chosen]:
            where = "texts" if chosen == "typed" else "filler"
            self.add_error(where, "There are no such texts to say in between.")
            return None
        try:
            return decoded_memory_test(
                {
                    "facts": [fact for _, fact in used],
                    "depths": _depths(data["depths"]),
                    "repeats": data["repeats"],
                    "filler": {
                        "languages": data["languages"] or ["en"],
                        "texts": texts[chosen],
                    },
                    "seed": data["seed"] or 0,
                    "mode": data["mode"] or Mode.RAW.value,
                    "summary_every": data["summary_every"] or 0,
                    "length": data["length"] or Length.GROWS.value,
                    "certain_from": data["certain"] / 100,
                }
            )
        except BadDefinition as error:
            self._put(error, [facts[place] for place, _ in used])
            return None

    def _put(self, error: BadDefinition, facts: list[FactForm]) -> None:
        place = re.match(r"facts\[(\d+)\]\.?(\w+)?", error.field)
        if place and int(place[1]) < len(facts):
            form, name = facts[int(place[1])], place[2] or "value"
            form.add_error(name if name in form.fields else "value", str(error))
            form.mark_errors()
            return
        name = {"certain_from": "certain", "filler": "filler"}.get(
            error.field, error.field.partition(".")[2] or error.field
        )
        self.add_error(name if name in self.fields else None, str(error))
        self.mark_errors()


def fact_forms(sent: Mapping[str, Any] | None) -> list[FactForm]:
    """The forms of the facts that may be planted."""
    return [
        FactForm(sent, prefix=f"fact-{place}", auto_id="f_%s")
        for place in range(MOST_FACTS)
    ]


def _depths(typed: str) -> list[int]:
    found = []
    for part in re.split(r"[\s,;]+", typed.strip()):
        if not (part.isascii() and part.isdigit() and len(part) < 6):
            raise BadDefinition("Write whole numbers, such as 0, 2, 8.", field="depths")
        found.append(int(part))
    return found
