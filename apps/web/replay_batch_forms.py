"""What every plan of a batch asks: its name, target, limits, caps and isolation."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from django import forms

from apps.engine.replay.run import Limits, TargetKind
from apps.replays.allowed import least_level, levels_to_ask
from apps.replays.models import TargetVersion
from apps.replays.planning import LONGEST_NAME, Caps, WrongPlan
from apps.replays.queries import TargetRow
from apps.web.agent_fields import choice, text
from apps.web.forms import MarkedForm, WholeField

_USUAL: Final = Limits()
_CAPS: Final = ("max_calls", "max_tokens", "max_money", "max_seconds")
_LIMITS: Final = ("seconds", "model_calls", "tool_calls", "output_tokens")
_FIELDS: Final = {
    "calls": "max_calls",
    "tokens": "max_tokens",
    "money": "max_money",
    "seconds": "max_seconds",
    "cases": "case",
}
"""Where what is wrong with a plan is shown, where its name is another one here."""


def _limit(label: str, usual: float, most: int) -> WholeField:
    return WholeField(label=label, initial=int(usual), min_value=1, max_value=most)


def _cap(label: str, hint: str, most: int) -> WholeField:
    return WholeField(
        label=label, help_text=hint, required=False, min_value=1, max_value=most
    )


class BatchForm(MarkedForm):
    """The part of a plan that is the same for replays and memory tests."""

    name = text("Name of the batch", most=LONGEST_NAME, required=True)
    seconds = _limit("Seconds of one run", _USUAL.seconds, 3_600)
    model_calls = _limit("Model calls of one run", _USUAL.model_calls, 1_000)
    tool_calls = _limit("Tool calls of one run", _USUAL.tool_calls, 10_000)
    output_tokens = _limit("Output tokens of one call", _USUAL.output_tokens, 200_000)
    max_calls = _cap("Model calls of all runs", "Empty: no cap of its own.", 10**7)
    max_tokens = _cap("Tokens of all runs", "In and out together.", 10**12)
    max_money = forms.DecimalField(
        label="Money of all runs",
        required=False,
        min_value=Decimal("0.000001"),
        max_digits=14,
        decimal_places=6,
    )
    max_seconds = _cap("Seconds until the batch stops", "Wall time.", 30 * 86_400)
    signal = WholeField(
        required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput
    )

    def __init__(
        self, *args: Any, targets: list[TargetRow], currency: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.targets = {str(one.target.pk): one for one in targets}
        named = [(key, one.target.name) for key, one in self.targets.items()]
        self.fields["target"] = choice("Target", named)
        self.fields["target"].required = True
        self.fields[
            "max_money"
        ].help_text = f"In {currency}, by the price table of this site."
        self.fields["least_isolation"] = choice("Least isolation", levels_to_ask())
        self.initial.setdefault("least_isolation", least_level().value)

    @property
    def limiting(self) -> list[Any]:
        """What one run may use."""
        return [self[name] for name in _LIMITS]

    @property
    def capping(self) -> list[Any]:
        """What all runs together may use."""
        return [self[name] for name in _CAPS]

    def chosen_target(self) -> TargetRow | None:
        """The target that was chosen, with what it is set to now."""
        return self.targets.get(self.cleaned_data.get("target", ""))

    def limits(self) -> Limits:
        """What one run may use at most."""
        data = self.cleaned_data
        return Limits(
            seconds=float(data["seconds"]),
            model_calls=data["model_calls"],
            tool_calls=data["tool_calls"],
            output_tokens=data["output_tokens"],
        )

    def caps(self) -> Caps:
        """What all runs together may use at most."""
        data = self.cleaned_data
        return Caps(
            calls=data["max_calls"],
            tokens=data["max_tokens"],
            money=data["max_money"],
            seconds=data["max_seconds"],
        )

    def put_plan_error(self, error: WrongPlan) -> None:
        """Show what is wrong with the plan at its field, else above the form."""
        name = _FIELDS.get(error.field, error.field)
        self.add_error(name if name in self.fields else None, str(error))
        self.mark_errors()

    def check_money(self, price: Mapping[str, str] | None) -> None:
        """A cap on money holds only where the price is known; else say so."""
        if self.cleaned_data.get("max_money") is not None and price is None:
            self.add_error(
                "max_money",
                "Money cannot be capped: the price table has no price for the model of "
                "this target. Cap calls or tokens instead.",
            )


def model_of(version: TargetVersion, kind: TargetKind) -> str:
    """The model that a target asks, "" where only it knows."""
    return "" if kind is TargetKind.HTTP else str(version.settings.get("model", ""))
