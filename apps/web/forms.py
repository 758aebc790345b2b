"""Forms: what a person may send, checked field by field."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django import forms
from django.contrib.auth.forms import UsernameField

from apps.accounts.models import RawBytes, User
from apps.accounts.operations import PrivacyChoice
from apps.accounts.permissions import Role, Scope
from apps.engine.formats import FORMATS
from apps.review.blind import BlindInput
from apps.review.operations import DecisionInput
from apps.review.transitions import (
    BlindVerdict,
    DismissalReason,
    FailureKind,
    Verdict,
)
from apps.verdicts.models import TrialNoteKind
from apps.verdicts.notes import LONGEST_NOTE

NOTED = [one for one in TrialNoteKind.choices if one[0] != TrialNoteKind.WITHDRAWN]


def format_choices() -> list[tuple[str, str]]:
    """The formats a person may choose by their labels, detection from content first."""
    named = sorted(FORMATS, key=lambda one: one.label.casefold())
    return [("", "Recognise from content"), *((one.slug, one.label) for one in named)]


class WholeField(forms.IntegerField):
    """A whole number; “1_0” is none, though `int` takes it for ten."""

    def to_python(self, value: Any) -> int | None:
        """The number, or None where nothing was typed."""
        if "_" in str(value):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        number: int | None = super().to_python(value)
        return number


class ProjectForm(forms.Form):
    """A new project."""

    name = forms.CharField(max_length=120)
    description = forms.CharField(max_length=500, required=False)


class ReadAgainForm(forms.Form):
    """Read an upload again, maybe as another format."""

    format = forms.ChoiceField(choices=format_choices, required=False)


class PlaceForm(forms.Form):
    """Of which task a trace is, and which trial; an empty task is none."""

    task = forms.CharField(max_length=200, required=False)
    trial = WholeField(min_value=0, max_value=2**31 - 1, required=False)


class TaskNameForm(forms.Form):
    """Another name for a task."""

    name = forms.CharField(max_length=200)


class JoinForm(forms.Form):
    """The task that takes over the trials of another one, by its name."""

    into = forms.CharField(max_length=300, label="Task")


class MarkedForm(forms.Form):
    """A form that tells assistive technology which of its fields are wrong, and why."""

    def mark_errors(self) -> None:
        """Mark the fields with errors; the page shows each under its field."""
        for name in self.errors:
            if name in self.fields:
                bound = self[name]
                bound.field.widget.attrs |= {
                    "aria-invalid": "true",
                    "aria-describedby": f"{bound.auto_id}_error",
                }


class TrialNoteForm(forms.Form):
    """What a reviewer notes on a trial; steps count from 1, none is the whole trial."""

    trace = WholeField(min_value=1, max_value=2**63 - 1, label="Trial")
    kind = forms.ChoiceField(choices=NOTED, label="Note")
    step = WholeField(min_value=1, max_value=2**31 - 1, required=False)
    note = forms.CharField(max_length=LONGEST_NOTE, required=False, label="Why")


class TrialForm(forms.Form):
    """A trial, by the id of its trace."""

    trace = WholeField(min_value=1, max_value=2**63 - 1, label="Trial")


class TraceSetForm(forms.Form):
    """What a trace set is called, and why it was made."""

    name = forms.CharField(max_length=80)
    note = forms.CharField(max_length=2_000, required=False)


class BaselineForm(forms.Form):
    """Make a set the baseline, or let the project have none."""

    act = forms.ChoiceField(choices=[("choose", "Choose"), ("clear", "Clear")])


class MemberForm(forms.Form):
    """Add a member by user name; a new user gets a one-time sign-in link."""

    username = UsernameField(
        max_length=150, validators=[User.username_validator], label="User name"
    )
    role = forms.ChoiceField(choices=Role.choices)


class RoleForm(forms.Form):
    """Change a member's role, or remove the member with an empty role."""

    role = forms.ChoiceField(choices=[("", "Remove"), *Role.choices], required=False)


class PrivacyForm(forms.Form):
    """What is kept of traces; no choice of bytes means what the site does."""

    redact_secrets = forms.BooleanField(required=False)
    structure_only = forms.BooleanField(required=False)
    raw_bytes = forms.ChoiceField(
        choices=[("", "As the site does"), *RawBytes.choices], required=False
    )

    def choice(self) -> PrivacyChoice:
        """The choice as the accounts app takes it."""
        data = self.cleaned_data
        raw = data["raw_bytes"]
        return PrivacyChoice(
            redact_secrets=data["redact_secrets"],
            structure_only=data["structure_only"],
            raw_bytes=RawBytes(raw) if raw else None,
        )


class BlindPercentForm(forms.Form):
    """Which share of the traces that come is looked at blindly."""

    percent = WholeField(min_value=0, max_value=100, label="Share")


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=80)
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, widget=forms.CheckboxSelectMultiple
    )


class ReportForm(forms.Form):
    """What a report is called."""

    title = forms.CharField(max_length=200)


class ReviewerForm(forms.Form):
    """What any decision says beside its verdict, based on the version of its page."""

    field_order = ("verdict", "reason")

    note = forms.CharField(max_length=10_000, required=False)
    failure_kind = forms.ChoiceField(
        choices=[("", "Not said"), *FailureKind.choices], required=False
    )
    where_agent = forms.CharField(max_length=300, required=False)
    where_step = WholeField(
        min_value=1, max_value=2**31 - 1, required=False, label="Step"
    )
    version = WholeField(min_value=0, max_value=2**31 - 1)
    submission = forms.UUIDField(required=False)

    def said(self) -> dict[str, Any]:
        """The fields as the review app takes them; steps count from 1 for people."""
        data: dict[str, Any] = self.cleaned_data
        step = data["where_step"]
        return {
            "note": data["note"].strip(),
            "failure_kind": data["failure_kind"],
            "where_agent": data["where_agent"],
            "where_step": None if step is None else step - 1,
        }

    @staticmethod
    def new_submission() -> str:
        """A key that makes the same form sent twice one decision."""
        return str(uuid4())


class DecisionForm(ReviewerForm):
    """A decision on a signal."""

    verdict = forms.ChoiceField(
        choices=Verdict.choices, error_messages={"required": "Choose a decision first."}
    )
    reason = forms.ChoiceField(
        choices=[("", ""), *DismissalReason.choices], required=False
    )

    def decision(self) -> DecisionInput:
        """The decision as the review app takes it."""
        return DecisionInput(
            verdict=Verdict(self.cleaned_data["verdict"]),
            reason=self.cleaned_data["reason"],
            **self.said(),
        )


class BlindForm(ReviewerForm):
    """What a reviewer says of a trace without knowing what the checks said."""

    verdict = forms.ChoiceField(
        choices=BlindVerdict.choices,
        error_messages={"required": "Choose an answer first."},
    )

    def decision(self) -> BlindInput:
        """The answer as the review app takes it."""
        return BlindInput(
            verdict=BlindVerdict(self.cleaned_data["verdict"]), **self.said()
        )


class AdoptForm(forms.Form):
    """Adopt a key, seeing the history up to the adoption `seen`; a note says why."""

    note = forms.CharField(max_length=1_000, required=False)
    seen = WholeField(min_value=0, max_value=2**31 - 1)


class PauseForm(forms.Form):
    """Pause a check, or let it go on."""

    act = forms.ChoiceField(choices=[("pause", "Pause"), ("resume", "Resume")])


class CaseForm(forms.Form):
    """What a regression case is called."""

    name = forms.CharField(max_length=120)


class VersionForm(forms.Form):
    """An act that is based on the version of the page it was made on."""

    version = WholeField(min_value=0, max_value=2**31 - 1)


def first_error(form: forms.Form) -> str:
    """The first thing that is wrong with a form, as one sentence."""
    for field, errors in form.errors.items():
        label = form.fields[field].label or field if field in form.fields else ""
        sentence = f"{label or field}: {errors[0]}".replace("_", " ").capitalize()
        return sentence.replace("\x00", "\ufffd")
    return ""
