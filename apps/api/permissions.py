"""What a token may do: its project only, and only the scopes it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts.models import ApiToken
from apps.accounts.permissions import Scope

if TYPE_CHECKING:  # rest_framework.views reads this module while it is being loaded
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """Lets a token through whose scopes suffice, and only to its own project.

    Views say `scopes = {"GET": Scope.READ, ...}`; a method that is not named is
    refused. A URL that names a project that is not the token's answers 404.
    """

    message = "This token may not do that: it lacks the scope."

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the token may call this view with this method."""
        token = request.auth
        if not isinstance(token, ApiToken):
            raise NotAuthenticated("Send an API token: “Authorization: Bearer …”.")
        if view.kwargs.get("slug", token.project.slug) != token.project.slug:
            raise Http404
        scopes: dict[str, Scope] = getattr(view, "scopes", {})
        needed = scopes.get("GET" if request.method == "HEAD" else request.method or "")
        return needed is not None and needed.value in token.scopes
