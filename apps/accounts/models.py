"""Users, projects, memberships, API tokens and one-time sign-in links."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower

from apps.accounts.permissions import Role


class User(AbstractUser):
    """A person who signs in."""

    @property
    def label(self) -> str:
        """The name that others see."""
        return self.get_full_name() or self.username


class RawBytes(models.TextChoices):
    """What happens to the bytes of a file once they are here, from lax to strict."""

    KEPT = "kept", "Kept as they came"
    ENCRYPTED = "encrypted", "Kept encrypted"
    NOT_KEPT = "not_kept", "Removed once they are read"


class Project(models.Model):
    """A wall around traces, signals and reports; everything belongs to one.

    `raw_bytes` is empty where the site's setting is enough. `blind_percent` is the
    share of traces that reviewers look at blindly, to estimate what the checks miss.
    """

    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    description = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    members = models.ManyToManyField(User, through="Membership")
    redact_secrets = models.BooleanField(default=True, db_default=True)
    structure_only = models.BooleanField(default=False, db_default=False)
    raw_bytes = models.CharField(
        max_length=9, choices=RawBytes.choices, blank=True, default="", db_default=""
    )

    blind_percent = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(blind_percent__lte=100),
                name="blind_percent_is_a_percentage",
            )
        ]

    def __str__(self) -> str:
        return self.slug


class PrivacyChange(models.Model):
    """The privacy settings of a project from one moment on, and who chose them."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    changed_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL)
    changed_at = models.DateTimeField()
    redact_secrets = models.BooleanField()
    structure_only = models.BooleanField()
    raw_bytes = models.CharField(max_length=9, choices=RawBytes.choices, blank=True)

    def __str__(self) -> str:
        return f"privacy of {self.project_id} at {self.changed_at}"


class Membership(models.Model):
    """What one user may do in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    role = models.CharField(max_length=12, choices=Role.choices)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user"], name="one_membership_per_user"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.project_id}: {self.role}"


class ApiToken(models.Model):
    """A credential of one project. Only its SHA-256 digest is kept."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=12))
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "project",
                Lower("name"),
                condition=models.Q(revoked_at=None),
                name="live_token_names_differ",
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.project_id}"


class SignInLink(models.Model):
    """A link that signs one user in once. Only its SHA-256 digest is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link for {self.user_id}"
