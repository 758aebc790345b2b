"""The form by which a batch goes on under other caps."""

from __future__ import annotations

from typing import Final

from django import forms

from apps.web.forms import WholeField

MOST: Final = 10**12
MOST_SECONDS: Final = 10**7


class CapsForm(forms.Form):
    """The most that a batch may use from now on; an empty field is no cap."""

    calls = WholeField(min_value=1, max_value=10**9, required=False)
    tokens = WholeField(min_value=1, max_value=MOST, required=False)
    money = forms.DecimalField(
        min_value=0, max_digits=14, decimal_places=6, required=False
    )
    seconds = WholeField(min_value=1, max_value=MOST_SECONDS, required=False)
