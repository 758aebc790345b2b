"""API tokens: `Authorization: Bearer evs_…`. A token belongs to one project."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.models import ApiToken
from apps.accounts.operations import note_token_use
from apps.accounts.queries import live_token


class TokenAuthentication(BaseAuthentication):
    """Finds the live token of a request; `request.auth` is the token."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, ApiToken] | None:
        """The token of the Authorization header, None without one; 401 for a bad one."""
        parts = get_authorization_header(request).split()
        if not parts:
            return None
        if len(parts) != 2 or parts[0].lower() != b"bearer":
            raise AuthenticationFailed("Send the token as “Authorization: Bearer …”.")
        token = live_token(parts[1].decode("latin-1"))
        if token is None:
            raise AuthenticationFailed("This token is unknown or was revoked.")
        note_token_use(token=token, now=timezone.now())
        return AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """What a 401 asks for."""
        return "Bearer"
